#pragma once
#include <span>

#include "troupe/autograd/parameter.hpp"

namespace troupe::optim {

/// Scales the gradients in place so that their total norm is at most `max_norm`, and returns the norm before
/// (PyTorch's clip_grad_norm_: the factor is max_norm / (norm + 1e-6) if that is below 1). Parameters without
/// a gradient are skipped. If the norm is infinite or NaN, the gradients stay as they are, unlike PyTorch's,
/// which all become zero or NaN: look at what is returned. Call it between the last backward pass and the
/// optimizer's step. Throws std::invalid_argument unless max_norm > 0.
double clip_grad_norm(std::span<parameter* const> parameters, double max_norm);

}  // namespace troupe::optim
