#include "troupe/ops/lamb_step.hpp"

#include <cmath>

#include "troupe/ops/detail/step_arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

lamb_factors factors_of(std::uint64_t step, const lamb_step_options& options) {
  return {.one_minus_beta1 = static_cast<float>(1 - options.beta1),
          .beta2 = static_cast<float>(options.beta2),
          .one_minus_beta2 = static_cast<float>(1 - options.beta2),
          .mean_scale = static_cast<float>(1 / (1 - power(options.beta1, step + 1))),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - power(options.beta2, step + 1))),
          .epsilon = static_cast<float>(options.epsilon),
          .weight_decay = static_cast<float>(options.weight_decay),
          .learning_rate = options.learning_rate};
}

}  // namespace

void lamb_step(std::span<const adam_slot> slots, std::uint64_t step, const lamb_step_options& options) {
  require_adam_slots("lamb_step", slots);
  if (slots.empty()) return;
  kernels_on(slots.front().weight.device()).lamb_step.step(slots, factors_of(step, options));
}

}  // namespace troupe
