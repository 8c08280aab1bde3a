#include "troupe/ops/sgd_step.hpp"

#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/detail/step_arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

void require_slots(std::span<const sgd_slot> slots, bool with_momentum) {
  for (const auto& each : slots) {
    require_weight("sgd_step", each.weight, slots.front().weight.device());
    require_like("sgd_step", "gradient", each.gradient, each.weight);
    if (with_momentum) require_like("sgd_step", "momentum_buffer", each.momentum_buffer, each.weight);
    require_low_precision("sgd_step", each.low_precision, each.weight);
  }
}

}  // namespace

void sgd_step(std::span<const sgd_slot> slots, const sgd_step_options& options) {
  require_slots(slots, options.momentum != 0);
  if (slots.empty()) return;
  sgd_factors factors{static_cast<float>(options.learning_rate), static_cast<float>(options.momentum),
                      static_cast<float>(options.weight_decay)};
  const auto& kernels = kernels_on(slots.front().weight.device()).sgd_step;
  auto step = options.momentum == 0 ? kernels.plain
              : options.nesterov    ? kernels.with_nesterov
                                    : kernels.with_momentum;
  step(slots, factors);
}

}  // namespace troupe
