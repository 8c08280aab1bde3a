#pragma once
#include <span>

#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// The formula of troupe/ops/adam_step.hpp with the factors that are equal for all elements precomputed.
struct adam_factors {
  float gradient_decay;  ///< lambda, or 0 where decoupled
  float shrink;          ///< 1 - learning_rate lambda where decoupled, or 1
  float one_minus_beta1, beta2, one_minus_beta2;
  float rate;        ///< learning_rate / (1 - beta1^t)
  float correction;  ///< sqrt(1 - beta2^t)
  float epsilon;
};

struct adam_step_kernels {
  kernel<void(std::span<const adam_slot> slots, const adam_factors& by)> step{"adam_step"};
};

}  // namespace troupe
