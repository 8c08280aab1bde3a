#pragma once
#include <span>

#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/ops/sgd_step.hpp"

namespace troupe {

struct sgd_factors {
  float rate, momentum, decay;
};

struct sgd_step_kernels {
  using step = kernel<void(std::span<const sgd_slot> slots, const sgd_factors& by)>;
  step plain{"sgd_step"};
  step with_momentum{"sgd_step"};
  step with_nesterov{"sgd_step"};
};

}  // namespace troupe
