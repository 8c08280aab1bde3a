#pragma once
#include <span>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe::optim::detail {

/// The gradients of the parameters that have one and are not frozen.
std::vector<tensor> gradients_of(std::span<parameter* const> parameters);

/// optimizer_state::zero_grad: none of them has a gradient afterwards.
void drop_gradients(std::span<const named_parameter> parameters);

}  // namespace troupe::optim::detail
