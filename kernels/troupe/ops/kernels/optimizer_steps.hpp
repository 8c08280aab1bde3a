#pragma once

#include <span>

#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/ops/lamb_step.hpp"
#include "troupe/ops/sgd_step.hpp"

namespace troupe {

struct sgd_factors {
  float rate, momentum, decay;
};

struct sgd_step_kernels {
  using step = kernel<void(std::span<const sgd_slot> slots, const sgd_factors& factors)>;
  step plain{"sgd_step"};
  step with_momentum{"sgd_step"};
  step with_nesterov{"sgd_step"};
};

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
  kernel<void(std::span<const adam_slot> slots, const adam_factors& factors)> step{"adam_step"};
};

/// The formula of troupe/ops/lamb_step.hpp with the factors that are equal for all elements precomputed.
struct lamb_factors {
  float one_minus_beta1, beta2, one_minus_beta2;
  float mean_scale;  ///< 1 / (1 - beta1^t)
  float root_scale;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon, weight_decay;
  double learning_rate;
};

struct lamb_step_kernels {
  kernel<void(std::span<const adam_slot> slots, const lamb_factors& factors)> step{"lamb_step"};
};

}  // namespace troupe
