#pragma once
#include <span>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe::optim {

/// Of those that have one.
std::vector<tensor> gradients_of(std::span<parameter* const> parameters);

}  // namespace troupe::optim
