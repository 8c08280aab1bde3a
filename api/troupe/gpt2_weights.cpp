#include "troupe/gpt2_weights.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/saved_weights.hpp"

namespace troupe {
namespace {

using by_name = std::map<std::string, tensor>;

/// What wrappers of modules put before names: torch.compile, DistributedDataParallel, Hugging Face's heads.
constexpr std::array<std::string_view, 4> prefixes{"_orig_mod.", "module.", "model.", "transformer."};
constexpr auto head = "lm_head.weight";
constexpr auto embedding = "wte.weight";

std::string published(const std::string& name) {
  std::string_view rest = name;
  auto begins = [&rest](std::string_view prefix) { return rest.starts_with(prefix); };
  for (auto found = std::ranges::find_if(prefixes, begins); found != prefixes.end();
       found = std::ranges::find_if(prefixes, begins))
    rest.remove_prefix(found->size());
  return std::string(rest);
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

/// How projections are stored.
enum class projections : std::uint8_t {
  conv1d,  ///< [in, out], as published
  linear   ///< [out, in], as in a Linear's weight (nanoGPT)
};

shape stored_shape(const std::string& name, const tensor& target, projections stored) {
  const auto& extents = target.shape();
  return is_projection(name) && stored == projections::conv1d ? shape{extents[1], extents[0]} : extents;
}

/// That of the first c_attn, [C, 3C] or [3C, C]; others can be square.
projections projections_in(const by_name& sources) {
  for (const auto& [name, value] : sources) {
    const auto& extents = value.shape();
    if (name.ends_with(".attn.c_attn.weight") && extents.rank() == 2 && extents[0] == 3 * extents[1])
      return projections::linear;
  }
  return projections::conv1d;
}

/// The file's tensors by published name, without the masks.
by_name sources_in(const std::filesystem::path& file) {
  by_name sources;
  for (auto& [name, value] : read_weights(file, {.others = other_numbers::convert})) {
    if (is_mask(name)) continue;
    if (!sources.emplace(published(name), value).second)
      throw bad_input("'" + file.string() + "' has " + published(name) +
                      " twice, with and without a prefix such as '" + std::string(prefixes.back()) + "'");
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

/// Names for a message, not hundreds.
struct name_list {
  std::string text;
  std::size_t count = 0;

  void add(const std::string& item) {
    constexpr std::size_t most_named = 8;
    if (++count <= most_named) text += (text.empty() ? "" : ", ") + item;
    more = count > most_named ? " and " + std::to_string(count - most_named) + " more" : "";
  }
  std::string after(const std::string& title) const { return count == 0 ? "" : "; " + title + text + more; }

 private:
  std::string more;
};

/// How many blocks the tensors "h.N...." are of.
std::size_t num_blocks(const by_name& tensors) {
  std::set<std::string> blocks;
  for (const auto& [name, value] : tensors)
    if (name.starts_with("h.")) blocks.insert(name.substr(2, name.find('.', 2) - 2));
  return blocks.size();
}

/// The one reason that explains many tensors, as far as there is one.
std::string reasons(const by_name& sources, const by_name& targets) {
  std::string text;
  if (num_blocks(sources) == 0)
    return "; none of its tensors has a name of GPT-2's, such as h.0.attn.c_attn.weight: the file is of "
           "another model";
  if (sources.contains(head) && !targets.contains(head))
    text += "; its output layer is not the token embedding: the model needs gpt_options::tie_weights = false";
  if (auto in_file = num_blocks(sources), in_model = num_blocks(targets); in_file != in_model)
    text += "; the file has " + std::to_string(in_file) + " blocks, the model " + std::to_string(in_model);
  auto rows = [](const by_name& tensors) {
    auto found = tensors.find(embedding);
    return found == tensors.end() || found->second.shape().rank() != 2 ? 0 : found->second.shape()[0];
  };
  if (rows(sources) > rows(targets) && rows(targets) > 0)
    text += "; the file's vocabulary has " + std::to_string(rows(sources)) + " tokens, the model's " +
            std::to_string(rows(targets)) +
            ": if it was padded, as nanoGPT's is to 50304, the model needs the padded size "
            "(gpt_options::vocabulary)";
  auto has_biases = [](const by_name& tensors) {
    return std::ranges::any_of(tensors, [](const auto& each) { return each.first.ends_with(".bias"); });
  };
  if (!sources.empty() && !has_biases(sources) && has_biases(targets))
    text += "; the file has no biases (nanoGPT's bias=False), and the model has";
  return text;
}

std::string problems_of(const by_name& sources, const by_name& targets, projections stored) {
  name_list missing, unknown, different;
  for (const auto& [name, target] : targets) {
    auto source = sources.find(name);
    auto expected = stored_shape(name, target, stored);
    if (source == sources.end())
      missing.add(name);
    else if (source->second.shape() != expected || !is_floating(source->second.dtype()))
      different.add(name + " is " + describe(source->second) + ", expected f32" + to_string(expected));
  }
  for (const auto& [name, source] : sources)
    if (!targets.contains(name)) unknown.add(name);
  auto names = missing.after("missing: ") + unknown.after("not in the model: ") +
               different.after("of another shape or dtype: ");
  return names.empty() ? names : reasons(sources, targets) + names;
}

tensor turned(const std::string& name, const tensor& value) {
  return is_projection(name) ? transpose(value) : value;
}

}  // namespace

void read_gpt2_weights(const std::filesystem::path& file, nn::Module& model) {
  auto targets = targets_of(model);
  auto sources = sources_in(file);
  fit_head(sources, targets);
  auto stored = projections_in(sources);
  if (auto problems = problems_of(sources, targets, stored); !problems.empty())
    throw bad_input("the weights in '" + file.string() + "' do not fit the model" + problems +
                    ". Use a model of the size, and with the vocabulary, that the file was made for");
  for (auto& [name, target] : targets) {
    auto value = cast(sources.at(name), dtype::f32);
    target.copy_from(stored == projections::conv1d ? turned(name, value) : value);
  }
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
