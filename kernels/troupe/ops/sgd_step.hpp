#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct sgd_step_options {
  double learning_rate = 1e-3;
  double momentum = 0;      ///< 0: no momentum, and no buffer is used
  double weight_decay = 0;  ///< added to the gradient, times the weight
  bool nesterov = false;
};

/// One step of stochastic gradient descent, PyTorch's formulas without dampening, in place:
///   g = gradient + weight_decay w;  m = momentum m + g;  w -= learning_rate (nesterov ? g + momentum m : m)
/// with m = g where momentum is 0, when `momentum_buffer` may be undefined. A buffer begins as zeros.
/// All tensors f32 of w's shape, else std::invalid_argument. The gradient is zero afterwards.
void sgd_step(tensor weight, tensor gradient, tensor momentum_buffer, const sgd_step_options& options);

}  // namespace troupe
