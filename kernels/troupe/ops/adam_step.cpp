#include "troupe/ops/adam_step.hpp"

#include <cmath>

#include "troupe/ops/detail/step_arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

adam_factors factors_of(std::uint64_t step, const adam_step_options& options) {
  auto decay = options.weight_decay, rate = options.learning_rate;
  return {.gradient_decay = static_cast<float>(options.decoupled ? 0 : decay),
          .shrink = static_cast<float>(options.decoupled ? 1 - rate * decay : 1),
          .one_minus_beta1 = static_cast<float>(1 - options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .one_minus_beta2 = static_cast<float>(1 - options.beta2),
          .rate = static_cast<float>(rate / (1 - power(options.beta1, step + 1))),
          .correction = static_cast<float>(std::sqrt(1 - power(options.beta2, step + 1))),
          .epsilon = static_cast<float>(options.epsilon)};
}

}  // namespace

void adam_step(std::span<const adam_slot> slots, std::uint64_t step, const adam_step_options& options) {
  require_adam_slots("adam_step", slots);
  if (slots.empty()) return;
  kernels_on(slots.front().weight.device()).adam_step.step(slots, factors_of(step, options));
}

}  // namespace troupe
