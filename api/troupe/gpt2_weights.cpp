#include "troupe/gpt2_weights.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/snapshot/safetensors.hpp"

namespace troupe {
namespace {

using by_name = std::map<std::string, tensor>;

constexpr std::string_view prefix = "transformer.";
constexpr auto head = "lm_head.weight";
constexpr auto embedding = "wte.weight";

std::string published(const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [name](auto ending) { return name.ends_with(ending); });
}

bool is_projection(const std::string& name) {
  return ends_with_any(
      name, {".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight"});
}

bool is_mask(const std::string& name) { return ends_with_any(name, {".attn.bias", ".attn.masked_bias"}); }

/// The model's tensors by their published names.
by_name targets_of(nn::Module& model) {
  by_name targets;
  for (const auto& [name, value] : model.state_dict()) targets.emplace(published(name), value);
  return targets;
}

shape published_shape(const std::string& name, const tensor& target) {
  const auto& extents = target.shape();
  return is_projection(name) ? shape{extents[1], extents[0]} : extents;
}

/// The file's tensors by name, without the prefix and without the masks.
by_name sources_in(const std::filesystem::path& file) {
  by_name sources;
  for (auto& [name, value] : read_safetensors(file).tensors) {
    if (is_mask(name)) continue;
    if (!sources.emplace(published(name), value).second)
      throw bad_input("'" + file.string() + "' has " + published(name) + " twice, with and without '" +
                      std::string(prefix) + "'");
  }
  return sources;
}

bool same_elements(const tensor& a, const tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::ranges::equal(a.bytes(), b.bytes());
}

/// Reconciles the output layer: drops a separate "lm_head.weight" equal to the embedding if the model is
/// tied, and adds the embedding as output layer if the model is untied and the file has none.
void fit_head(by_name& sources, const by_name& targets) {
  auto own = sources.find(head);
  auto shared = sources.find(embedding);
  if (shared == sources.end()) return;
  if (own == sources.end() && targets.contains(head)) sources.emplace(head, shared->second);
  if (own != sources.end() && !targets.contains(head) && same_elements(own->second, shared->second))
    sources.erase(own);
}

std::string problems_of(const by_name& sources, const by_name& targets) {
  std::string missing, unknown, different;
  auto add = [](std::string& list, const std::string& item) { list += (list.empty() ? "" : ", ") + item; };
  for (const auto& [name, target] : targets) {
    auto source = sources.find(name);
    auto expected = published_shape(name, target);
    if (source == sources.end())
      add(missing, name);
    else if (source->second.shape() != expected || !is_floating(source->second.dtype()))
      add(different, name + " is " + describe(source->second) + ", expected " + to_string(expected));
  }
  for (const auto& [name, source] : sources)
    if (!targets.contains(name)) add(unknown, name);
  std::string text;
  if (!missing.empty()) text += "; missing: " + missing;
  if (!unknown.empty()) text += "; not in the model: " + unknown;
  if (!different.empty()) text += "; of another shape: " + different;
  return text;
}

tensor turned(const std::string& name, const tensor& value) {
  return is_projection(name) ? transpose(value) : value;
}

}  // namespace

void read_gpt2_weights(const std::filesystem::path& file, nn::Module& model) {
  auto targets = targets_of(model);
  auto sources = sources_in(file);
  fit_head(sources, targets);
  if (auto problems = problems_of(sources, targets); !problems.empty())
    throw bad_input("the weights in '" + file.string() + "' do not fit the model" + problems +
                    ". Use a model of the size, and with the vocabulary, that the file was made for");
  for (auto& [name, target] : targets) target.copy_from(turned(name, cast(sources.at(name), dtype::f32)));
  for (auto* each : model.parameters()) each->mark_changed();
}

void write_gpt2_weights(const std::filesystem::path& file, nn::Module& model) {
  std::vector<named_tensor> tensors;
  for (const auto& [name, value] : targets_of(model)) tensors.push_back({name, turned(name, value.to({}))});
  write_safetensors(file, tensors, {{"format", "pt"}});
}

bool have_gpt2_layout(const std::vector<named_tensor>& tensors) {
  return std::ranges::any_of(tensors, [](const named_tensor& each) {
    const auto& extents = each.value.shape();
    return each.name.ends_with("h.0.attn.c_attn.weight") && extents.rank() == 2 &&
           extents[1] == 3 * extents[0];
  });
}

}  // namespace troupe
