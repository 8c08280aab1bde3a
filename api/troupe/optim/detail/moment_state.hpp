#pragma once
#include <cmath>

#include "troupe/ops/adam_step.hpp"
#include "troupe/optim/detail/gradients_of.hpp"
#include "troupe/optim/lr_schedule.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::optim::detail {

/// Optimizer state with the first and second moments of each parameter's gradient and the number of its
/// steps, shared by Adam and LAMB. The moments begin as zeros, and their bias is corrected by the number of
/// steps that the parameter itself has had: a parameter that gets its first gradient late moves as in a first
/// step.
class moment_state : public optimizer_state {
 public:
  /// The step operation of troupe/ops with its options bound; `rate_factor` is the schedule's value.
  using step_function =
      std::function<void(std::span<const adam_slot> slots, std::uint64_t step, double rate_factor)>;

  /// Whether the step of an element depends on that element only (Adam) or on the whole tensor (LAMB).
  enum class update_kind { elementwise, whole_tensor };

  moment_state(step_function step, update_kind kind, lr_schedule schedule,
               std::vector<named_parameter> parameters);
  void apply(std::uint64_t step) override;
  void zero_grad() override { drop_gradients(parameters_); }
  bool is_elementwise() const override { return kind_ == update_kind::elementwise; }
  void apply_part(std::uint64_t step, const parameter_part& part, const tensor& gradient) override;
  void end_parts(std::uint64_t step, std::size_t index) override;
  std::vector<named_tensor> state() const override;

 private:
  adam_slot slot_of(std::size_t index) const;
  std::uint64_t num_steps(std::size_t index, std::uint64_t step) const;
  double rate_factor(std::uint64_t step) const { return schedule_ ? schedule_(step) : 1; }

  step_function step_;
  update_kind kind_;
  lr_schedule schedule_;
  std::vector<named_parameter> parameters_;
  std::vector<tensor> exp_avg_, exp_avg_sq_;
  tensor num_steps_;  ///< i64 [parameters], on the CPU; unknown_steps: as many as the job
};

/// Throws std::invalid_argument "[where] expected <option> ..., got ..." unless `is_good`.
void require_option(const char* function, bool is_good, const char* expected, double got);

/// Checks the options that Adam and LAMB share.
template <class Options>
void require_moment_options(const char* function, const Options& options) {
  require_option(function, options.lr >= 0 && std::isfinite(options.lr), "a finite lr >= 0", options.lr);
  require_option(function, options.beta1 >= 0 && options.beta1 < 1, "beta1 in [0, 1)", options.beta1);
  require_option(function, options.beta2 >= 0 && options.beta2 < 1, "beta2 in [0, 1)", options.beta2);
  require_option(function, options.eps >= 0 && std::isfinite(options.eps), "a finite eps >= 0", options.eps);
  require_option(function, options.weight_decay >= 0 && std::isfinite(options.weight_decay),
                 "a finite weight_decay >= 0", options.weight_decay);
}

}  // namespace troupe::optim::detail
