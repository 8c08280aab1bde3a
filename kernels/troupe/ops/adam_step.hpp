#pragma once
#include <cstdint>
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct adam_step_options {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;  ///< AdamW: the weight shrinks by itself, instead of through the gradient
};

/// One weight and what its step reads and writes: f32 of the weight's shape, all on one device.
struct adam_slot {
  tensor weight, gradient;
  tensor exp_avg, exp_avg_sq;  ///< f32, of the parameter's shape; begin as zeros
  tensor low_precision = {};  ///< undefined, or bf16 or f16: the new weight is rounded to it in the same pass
};

/// Step `step`, from 0, of Adam (Kingma, Ba 2015) or AdamW (Loshchilov, Hutter 2019), PyTorch's formulas,
/// in place. With t = step + 1, lambda the weight decay:
///   Adam: g = gradient + lambda w;  AdamW: w -= learning_rate lambda w, g = gradient
///   m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
///   w -= learning_rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
/// The gradient stays as it is. Throws std::invalid_argument for tensors of other dtypes, shapes or devices,
/// before anything is written. All slots together are one pass over memory.
void adam_step(std::span<const adam_slot> slots, std::uint64_t step, const adam_step_options& options);

}  // namespace troupe
