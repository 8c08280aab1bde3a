#include "troupe/nn/forward_through.hpp"

#include <typeinfo>

#include "troupe/nn/activation.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/detail/layer_error.hpp"
#include "troupe/nn/linear.hpp"

namespace troupe::nn {
namespace {

/// `layer` as a Layer; null if it has another type or a derived one, which may override forward.
template <class Layer>
Layer* exactly(Module& layer) {
  return typeid(layer) == typeid(Layer) ? static_cast<Layer*>(&layer) : nullptr;
}

}  // namespace

bool fuses_with(Module& layer, Module& next) {
  return exactly<ReLU>(next) && (exactly<Linear>(layer) || exactly<Conv2d>(layer));
}

variable forward_with_relu(Module& layer, const variable& input) {
  try {
    if (auto* linear = exactly<Linear>(layer)) return linear->forward_with_relu(input);
    return dynamic_cast<Conv2d&>(layer).forward_with_relu(input);
  } catch (...) {
    detail::rethrow_in_layer(layer.path());
  }
}

variable forward_through(std::span<const std::shared_ptr<Module>> layers, variable value) {
  for (std::size_t at = 0; at < layers.size(); ++at) {
    auto is_fused = at + 1 < layers.size() && fuses_with(*layers[at], *layers[at + 1]);
    value = is_fused ? forward_with_relu(*layers[at], value) : (*layers[at])(value);
    if (is_fused) ++at;
  }
  return value;
}

}  // namespace troupe::nn
