#pragma once
#include <cmath>

#include "troupe/ops/adam_step.hpp"
#include "troupe/optim/lr_schedule.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::optim {

/// Running means of each parameter's gradients and of their squares, and a step over all that have a
/// gradient: what Adam and LAMB have in common.
class moment_state : public optimizer_state {
 public:
  /// The ops' step, with its options; `rate_factor` is what the schedule gives.
  using step_function =
      std::function<void(std::span<const adam_slot> slots, std::uint64_t step, double rate_factor)>;

  /// Whether `how` steps each element by itself.
  enum class elements { alone, together };

  moment_state(step_function how, elements stepped, lr_schedule schedule,
               std::vector<named_parameter> parameters);
  void apply(std::uint64_t step) override;
  bool steps_elements_alone() const override { return stepped_ == elements::alone; }
  void apply_to(std::uint64_t step, const parameter_part& which) override;
  std::vector<named_tensor> state() const override;

 private:
  adam_slot slot_of(std::size_t index) const;
  void step_slots(std::uint64_t step);

  step_function how_;
  elements stepped_;
  lr_schedule schedule_;
  std::vector<named_parameter> parameters_;
  std::vector<tensor> exp_avg_, exp_avg_sq_;
  std::vector<adam_slot> slots_;  ///< of the step at hand
};

/// Throws std::invalid_argument "[where] expected <option> ..., got ..." unless `is_good`.
void require_option(const char* where, bool is_good, const char* expected, double got);

/// The options that Adam and LAMB share.
template <class Options>
void require_moment_options(const char* where, const Options& options) {
  require_option(where, options.lr >= 0 && std::isfinite(options.lr), "a finite lr >= 0", options.lr);
  require_option(where, options.beta1 >= 0 && options.beta1 < 1, "beta1 in [0, 1)", options.beta1);
  require_option(where, options.beta2 >= 0 && options.beta2 < 1, "beta2 in [0, 1)", options.beta2);
  require_option(where, options.eps >= 0 && std::isfinite(options.eps), "a finite eps >= 0", options.eps);
  require_option(where, options.weight_decay >= 0 && std::isfinite(options.weight_decay),
                 "a finite weight_decay >= 0", options.weight_decay);
}

}  // namespace troupe::optim
