#pragma once
#include <memory>
#include <span>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// Runs `layers` in sequence. Fuses a ReLU directly after a Linear or Conv2d into it, with the same bits,
/// unless one of them is of a derived class. Errors name the layer.
variable forward_through(std::span<const std::shared_ptr<Module>> layers, variable value);

/// Whether forward_with_relu(layer, x) computes what `next` computes from layer's output: a ReLU after a
/// Linear or Conv2d, none of them of a derived class.
bool fuses_with(Module& layer, Module& next);
variable forward_with_relu(Module& layer, const variable& input);

}  // namespace troupe::nn
