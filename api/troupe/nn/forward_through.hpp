#pragma once
#include <memory>
#include <span>

#include "troupe/nn/module.hpp"

namespace troupe::nn {

/// The output of `layers`, one after the other. A ReLU right behind a Linear or a Conv2d is computed in the
/// same pass, with the same bits, as long as neither is of a derived class. Errors name
/// the layer.
variable forward_through(std::span<const std::shared_ptr<Module>> layers, variable value);

}  // namespace troupe::nn
