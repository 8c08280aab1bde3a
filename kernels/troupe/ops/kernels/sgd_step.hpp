#pragma once
#include <span>

#include "troupe/ops/sgd_step.hpp"

namespace troupe {

struct sgd_factors {
  float rate, momentum, decay, gradient_scale;
};

struct sgd_step_kernels {
  using step = void (*)(std::span<const sgd_slot> slots, const sgd_factors& by);
  step plain = nullptr;
  step with_momentum = nullptr;
  step with_nesterov = nullptr;
};

}  // namespace troupe
