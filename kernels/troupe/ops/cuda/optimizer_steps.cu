#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/cuda/loops/step_slots.cuh"

namespace troupe::cuda {
namespace {

struct adam {
  static constexpr int num_states = 2;
  adam_factors factors;
  __device__ void operator()(float& w, float g, float& m, float& v) const {
    auto gradient = g + factors.gradient_decay * w;
    m += factors.one_minus_beta1 * (gradient - m);
    v = factors.beta2 * v + factors.one_minus_beta2 * (gradient * gradient);
    w = factors.shrink * w - factors.rate * m / (sqrtf(v) / factors.correction + factors.epsilon);
  }
};

struct plain_sgd {
  static constexpr int num_states = 0;
  sgd_factors factors;
  __device__ void operator()(float& w, float g, float&, float&) const {
    w -= factors.rate * (g + factors.decay * w);
  }
};

template <bool is_nesterov>
struct momentum_sgd {
  static constexpr int num_states = 1;
  sgd_factors factors;
  __device__ void operator()(float& w, float g, float& m, float&) const {
    auto gradient = g + factors.decay * w;
    m = factors.momentum * m + gradient;
    w -= factors.rate * (is_nesterov ? gradient + factors.momentum * m : m);
  }
};

void step_adam(std::span<const adam_slot> slots, const adam_factors& factors) {
  auto describe = [](const adam_slot& slot) {
    return slot_of(slot.weight, slot.gradient, slot.exp_avg, slot.exp_avg_sq, slot.low_precision);
  };
  step_slots(slots, describe, adam{factors});
}

template <class Step>
void step_sgd(std::span<const sgd_slot> slots, const sgd_factors& factors) {
  auto describe = [](const sgd_slot& slot) {
    return slot_of(slot.weight, slot.gradient, slot.momentum_buffer, {}, slot.low_precision);
  };
  step_slots(slots, describe, Step{factors});
}

}  // namespace

adam_step_kernels adam_step() { return {.step = step_adam}; }

sgd_step_kernels sgd_step() {
  return {.plain = step_sgd<plain_sgd>,
          .with_momentum = step_sgd<momentum_sgd<false>>,
          .with_nesterov = step_sgd<momentum_sgd<true>>};
}

}  // namespace troupe::cuda
