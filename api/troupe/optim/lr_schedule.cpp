#include "troupe/optim/lr_schedule.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/math/elementary_functions.hpp"
#include "troupe/optim/detail/number_text.hpp"

namespace troupe::optim {
namespace {

// Types with names, so that a schedule can be described.

struct warmup_factor {
  std::uint64_t warmup_steps;
  double operator()(std::uint64_t step) const {
    return step >= warmup_steps ? 1 : static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  }
  std::string text() const { return "linear_warmup(" + std::to_string(warmup_steps) + ")"; }
};

struct cosine_factor {
  std::uint64_t total_steps, warmup_steps;
  double final_factor;
  double operator()(std::uint64_t step) const {
    if (step < warmup_steps) return warmup_factor{warmup_steps}(step);
    if (step >= total_steps) return final_factor;
    auto done = static_cast<double>(step - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
    return final_factor + (1 - final_factor) * (1 + cosine_of_pi_times(done)) / 2;
  }
  std::string text() const {
    return "cosine(" + std::to_string(total_steps) + ", " + std::to_string(warmup_steps) + ", " +
           detail::number_text(final_factor) + ")";
  }
};

struct step_factor {
  std::uint64_t step_size;
  double factor;
  double operator()(std::uint64_t step) const {
    double result = 1;
    for (auto count = step / step_size; count > 0; --count) result *= factor;
    return result;
  }
  std::string text() const {
    return "step_decay(" + std::to_string(step_size) + ", " + detail::number_text(factor) + ")";
  }
};

template <class Factor>
std::string text_if(const lr_schedule& schedule) {
  const auto* found = schedule.target<Factor>();
  return found ? found->text() : "";
}

}  // namespace

lr_schedule linear_warmup(std::uint64_t warmup_steps) { return warmup_factor{warmup_steps}; }

lr_schedule cosine(std::uint64_t total_steps, std::uint64_t warmup_steps, double final_factor) {
  if (warmup_steps >= total_steps)
    throw_invalid("cosine", "fewer steps of warm-up than in all",
                  std::to_string(warmup_steps) + " of " + std::to_string(total_steps));
  if (!(final_factor >= 0 && final_factor <= 1))
    throw_invalid("cosine", "final_factor in [0, 1]", std::to_string(final_factor));
  return cosine_factor{total_steps, warmup_steps, final_factor};
}

lr_schedule step_decay(std::uint64_t step_size, double factor) {
  if (step_size < 1) throw_invalid("step_decay", "step_size >= 1", std::to_string(step_size));
  if (!(factor > 0)) throw_invalid("step_decay", "factor > 0", std::to_string(factor));
  return step_factor{step_size, factor};
}

std::string text_of(const lr_schedule& schedule) {
  if (!schedule) return "constant";
  return text_if<warmup_factor>(schedule) + text_if<cosine_factor>(schedule) + text_if<step_factor>(schedule);
}

}  // namespace troupe::optim
