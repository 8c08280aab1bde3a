#include "troupe/nn/forward_through.hpp"

#include <typeinfo>

#include "troupe/nn/activation.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/layer_error.hpp"
#include "troupe/nn/linear.hpp"

namespace troupe::nn {
namespace {

/// `layer` as a Layer; null if it has another type or a derived one, which may override forward.
template <class Layer>
Layer* exactly(Module& layer) {
  return typeid(layer) == typeid(Layer) ? static_cast<Layer*>(&layer) : nullptr;
}

/// Calls the fused forward of `linear` or `convolution`, whichever is not null.
variable forward_of(Module& layer, Linear* linear, Conv2d* convolution, const variable& value) {
  try {
    return linear        ? linear->forward_with_relu(value)
           : convolution ? convolution->forward_with_relu(value)
                         : layer.forward(value);
  } catch (...) {
    rethrow_in_layer(layer.path());
  }
}

}  // namespace

variable forward_through(std::span<const std::shared_ptr<Module>> layers, variable value) {
  for (std::size_t at = 0; at < layers.size(); ++at) {
    auto& layer = *layers[at];
    auto relu_follows = at + 1 < layers.size() && exactly<ReLU>(*layers[at + 1]);
    auto* linear = relu_follows ? exactly<Linear>(layer) : nullptr;
    auto* convolution = relu_follows ? exactly<Conv2d>(layer) : nullptr;
    value = forward_of(layer, linear, convolution, value);
    if (linear || convolution) ++at;
  }
  return value;
}

}  // namespace troupe::nn
