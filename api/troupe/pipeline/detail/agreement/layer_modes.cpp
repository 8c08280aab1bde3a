#include "troupe/pipeline/detail/agreement/layer_modes.hpp"

#include <algorithm>
#include <span>
#include <typeinfo>

#include "troupe/agreement/job_description.hpp"

namespace troupe::detail {
namespace {

/// `path` has no trailing dot.
void collect(nn::Module& module, const std::string& path, layer_modes& into) {
  if (typeid(module) != typeid(nn::Sequential) && typeid(module) != typeid(nn::Graph))
    (module.is_training() ? into.trained : into.evaluated).push_back(path);
  module.each_child([&](const std::string& name, nn::Module& child) {
    auto inner = path.empty() ? name : path + "." + name;
    collect(child, name.empty() ? path : inner, into);
  });
}

std::string text_of(const std::vector<std::string>& names, const std::string& kind) {
  constexpr std::size_t most_named = 8;
  std::string all, first;
  for (std::size_t i = 0; i < names.size(); ++i) {
    all += (i == 0 ? "" : ", ") + names[i];
    if (i + 1 == most_named) first = all;
  }
  if (all.empty()) return "none";
  if (names.size() <= most_named) return all;
  return std::to_string(names.size()) + " " + kind + " (" + first + ", ...; hash " +
         agreement::short_hash(std::as_bytes(std::span(all))) + ")";
}

}  // namespace

layer_modes modes_of(const nn::Graph& model) {
  layer_modes modes;
  for (int node = 0; node < model.size(); ++node) collect(*model[node], model.name_of(node), modes);
  return modes;
}

std::string text_of(const layer_modes& modes) { return text_of(modes.evaluated, "layers"); }

std::string frozen_parameters_of(const nn::Graph& model) {
  nn::Graph copy(model);
  std::vector<std::string> frozen;
  for (const auto& [name, target] : copy.named_parameters())
    if (!target->requires_gradient) frozen.push_back(name);
  std::ranges::sort(frozen);
  return text_of(frozen, "parameters");
}

}  // namespace troupe::detail
