#pragma once
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct sgd_step_options {
  double learning_rate = 1e-3;
  double momentum = 0;      ///< 0: no momentum, and no buffer is used
  double weight_decay = 0;  ///< added to the gradient, times the weight
  bool nesterov = false;
};

/// One weight and what its step reads and writes: f32 of the weight's shape, all on one device.
struct sgd_slot {
  tensor weight, gradient;
  tensor momentum_buffer = {};  ///< begins as zeros; without momentum it is not looked at
  tensor low_precision = {};  ///< undefined, or bf16 or f16: the new weight is rounded to it in the same pass
};

/// One step of stochastic gradient descent, PyTorch's formulas without dampening, in place:
///   g = gradient + weight_decay w
///   m = momentum m + g;  w -= learning_rate (nesterov ? g + momentum m : m)
/// with m = g where momentum is 0. The gradient stays as it is. Throws std::invalid_argument for tensors of
/// other dtypes, shapes or devices, before anything is written. All slots together are one pass over memory.
void sgd_step(std::span<const sgd_slot> slots, const sgd_step_options& options);

}  // namespace troupe
