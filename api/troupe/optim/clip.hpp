#pragma once
#include <span>

#include "troupe/autograd/parameter.hpp"

namespace troupe::optim {

/// Scales the gradients of the parameters that have one, in place, so that the norm of all of them together
/// is at most `max_norm`, and returns the norm they had (PyTorch's clip_grad_norm_: by max_norm / (norm +
/// 1e-6) if that is below 1). To be called between the last backward pass and the optimizer's step. Throws
/// std::invalid_argument unless max_norm > 0.
double clip_grad_norm(std::span<parameter* const> parameters, double max_norm);

}  // namespace troupe::optim
