#include "troupe/optim/lr_schedule.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/math/cosine.hpp"

namespace troupe::optim {

lr_schedule linear_warmup(std::uint64_t warmup_steps) {
  return [warmup_steps](std::uint64_t step) {
    return step >= warmup_steps ? 1 : static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  };
}

lr_schedule cosine(std::uint64_t total_steps, std::uint64_t warmup_steps, double final_factor) {
  if (warmup_steps >= total_steps)
    throw_invalid("cosine", "fewer steps of warm-up than in all",
                  std::to_string(warmup_steps) + " of " + std::to_string(total_steps));
  if (!(final_factor >= 0 && final_factor <= 1))
    throw_invalid("cosine", "final_factor in [0, 1]", std::to_string(final_factor));
  return [=](std::uint64_t step) {
    if (step < warmup_steps) return linear_warmup(warmup_steps)(step);
    if (step >= total_steps) return final_factor;
    auto done = static_cast<double>(step - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
    return final_factor + (1 - final_factor) * (1 + cosine_of_pi_times(done)) / 2;
  };
}

lr_schedule step_decay(std::uint64_t step_size, double factor) {
  if (step_size < 1) throw_invalid("step_decay", "step_size >= 1", std::to_string(step_size));
  if (!(factor > 0)) throw_invalid("step_decay", "factor > 0", std::to_string(factor));
  return [=](std::uint64_t step) {
    double result = 1;
    for (auto count = step / step_size; count > 0; --count) result *= factor;
    return result;
  };
}

}  // namespace troupe::optim
