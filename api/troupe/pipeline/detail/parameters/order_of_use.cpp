#include "troupe/pipeline/detail/parameters/order_of_use.hpp"

#include <map>

namespace troupe::detail {

std::vector<std::vector<std::size_t>> weights_by_layer(const std::vector<std::shared_ptr<nn::Module>>& layers,
                                                       const std::vector<named_parameter>& parameters,
                                                       const std::vector<tied_gradients::weight>& tied) {
  std::map<const parameter*, std::size_t> index_of;
  for (std::size_t index = 0; index < parameters.size(); ++index) index_of[parameters[index].target] = index;
  for (const auto& weight : tied)
    for (const auto& use : weight.here) index_of[use.target] = index_of.at(weight.here.front().target);
  std::vector<std::vector<std::size_t>> result;
  for (const auto& layer : layers) {
    auto& weights = result.emplace_back();
    for (const auto* each : layer->parameters())
      if (auto found = index_of.find(each); found != index_of.end() && each->requires_gradient)
        weights.push_back(found->second);
  }
  return result;
}

std::vector<std::size_t> in_order_of_use(const std::vector<std::vector<std::size_t>>& by_layer,
                                         std::size_t count) {
  std::vector<std::size_t> result;
  std::vector<bool> is_listed(count, false);
  auto add = [&](std::size_t index) {
    if (!is_listed[index]) result.push_back(index);
    is_listed[index] = true;
  };
  for (const auto& layer : by_layer)
    for (auto index : layer) add(index);
  for (std::size_t index = 0; index < count; ++index) add(index);
  return result;
}

}  // namespace troupe::detail
