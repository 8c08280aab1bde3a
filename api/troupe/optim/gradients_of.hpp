#pragma once
#include <span>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe::optim {

/// The gradients of the parameters that have one and are not frozen.
std::vector<tensor> gradients_of(std::span<parameter* const> parameters);

}  // namespace troupe::optim
