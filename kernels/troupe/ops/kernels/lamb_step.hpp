#pragma once
#include <span>

#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/ops/lamb_step.hpp"

namespace troupe {

/// The formula of troupe/ops/lamb_step.hpp with the factors that are equal for all elements precomputed.
struct lamb_factors {
  float one_minus_beta1, beta2, one_minus_beta2;
  float mean_scale;  ///< 1 / (1 - beta1^t)
  float root_scale;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon, weight_decay;
  double learning_rate;
};

struct lamb_step_kernels {
  kernel<void(std::span<const adam_slot> slots, const lamb_factors& by)> step{"lamb_step"};
};

}  // namespace troupe
