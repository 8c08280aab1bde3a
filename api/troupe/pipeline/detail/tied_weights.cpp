#include "troupe/pipeline/detail/tied_weights.hpp"

#include <algorithm>
#include <map>

#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

/// The parameters of clones of the single layers, in which a tied layer has its own parameter.
struct described_layer {
  std::shared_ptr<nn::Module> module;
  std::vector<named_parameter> parameters;
};

std::vector<described_layer> layers_of(const nn::Graph& model) {
  std::vector<described_layer> layers;
  for (int index = 0; index < model.size(); ++index) {
    layers.push_back({model[index]->clone(), {}});
    layers.back().parameters = layers.back().module->named_parameters(model.prefix_of(index));
  }
  return layers;
}

const parameter& owner_of(const named_parameter& use, const std::vector<described_layer>& layers) {
  const auto& name = use.target->tied_to;
  for (const auto& layer : layers)
    for (const auto& each : layer.parameters) {
      if (each.name != name) continue;
      if (each.target->tied_to.empty() && each.target->extents == use.target->extents) return *each.target;
      throw bad_input(use.name + " " + to_string(use.target->extents) + " cannot be the same as " + name +
                      " " + to_string(each.target->extents) +
                      ": the shapes must agree, and the latter be no copy");
    }
  throw bad_input(use.name + " is to be the same as " + name + ", which the model does not have");
}

}  // namespace

std::vector<tied_weight> tied_weights_of(const nn::Graph& model) {
  auto layers = layers_of(model);
  std::map<std::string, tied_weight> found;
  for (const auto& layer : layers)
    for (const auto& each : layer.parameters) {
      if (each.target->tied_to.empty()) continue;
      const auto& owner = owner_of(each, layers);
      found[each.target->tied_to] = {each.target->tied_to, {}, owner.init, owner.requires_gradient};
    }
  for (std::size_t index = 0; index < layers.size(); ++index)
    for (const auto& each : layers[index].parameters) {
      auto tied = found.find(each.target->tied_to.empty() ? each.name : each.target->tied_to);
      if (tied != found.end()) tied->second.uses.push_back({each.name, static_cast<int>(index)});
    }
  std::vector<tied_weight> result;
  for (auto& [name, weight] : found) result.push_back(std::move(weight));
  return result;
}

std::vector<int> stages_of(const tied_weight& weight, const std::vector<stage_range>& partition) {
  std::vector<int> stages;
  for (std::size_t stage = 0; stage < partition.size(); ++stage)
    if (std::ranges::any_of(weight.uses, [&range = partition[stage]](const tied_weight::use& use) {
          return range.first <= use.layer && use.layer < range.last;
        }))
      stages.push_back(static_cast<int>(stage));
  return stages;
}

std::vector<std::string> parameter_names_of(const nn::Graph& model) {
  std::vector<std::string> names;
  for (const auto& layer : layers_of(model))
    for (const auto& each : layer.parameters)
      if (each.target->tied_to.empty()) names.push_back(each.name);
  std::ranges::sort(names);
  return names;
}

std::vector<named_parameter> take_uses(const tied_weight& weight, std::vector<named_parameter>& parameters,
                                       std::uint64_t seed) {
  std::vector<named_parameter> uses;
  for (const auto& use : weight.uses) {
    auto found = std::ranges::find(parameters, use.name, &named_parameter::name);
    if (found == parameters.end()) continue;
    uses.push_back(*found);
    parameters.erase(found);
  }
  if (weight.init) weight.init(uses.front().target->value(), seed, weight.name);
  for (const auto& use : uses) use.target->requires_gradient = weight.requires_gradient;
  share_value(uses);
  return uses;
}

void share_value(const std::vector<named_parameter>& uses) {
  for (const auto& use : uses) use.target->value() = uses.front().target->value();
}

std::vector<std::string> names_of_uses(const tied_weight& weight) {
  std::vector<std::string> names;
  for (const auto& use : weight.uses) names.push_back(use.name);
  return names;
}

}  // namespace troupe::detail
