#pragma once
#include <span>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe::optim {

struct loss_scaler_options {
  double initial_scale = 65536;         ///< > 0, finite in f32; powers of two lose no bits
  double growth_factor = 2;             ///< > 1, finite
  double backoff_factor = 0.5;          ///< in (0, 1)
  std::int64_t growth_interval = 2000;  ///< good steps in a row after which the scale grows, >= 1
};

/// The dynamic loss scale of mixed precision (Micikevicius et al., "Mixed precision training", 2018, section
/// 3.2; the defaults are PyTorch's GradScaler's). The loss is multiplied with `scale()`, so that small
/// gradients do not vanish in f16; before the optimizer's step they are divided by it; a step whose gradients
/// overflowed is skipped and the scale goes down.
///
///   loss = scaler.scale() * loss;  backward
///   bool is_finite = scaler.unscale_and_check(parameters);
///   if (is_finite) optimizer->apply(step - scaler.num_skipped());
///   scaler.update(is_finite);
///
/// Where a model has several stages, all must do the same: combine their answers, and call `drop_gradients`
/// on those that were finite by themselves, before `update`.
class loss_scaler {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit loss_scaler(loss_scaler_options options = {});

  double scale() const;
  /// Divides the gradients of the parameters that have one by the scale. If one of them is infinite or NaN,
  /// returns false, and no parameter has a gradient afterwards.
  bool unscale_and_check(std::span<parameter* const> parameters) const;
  /// After each step: the scale shrinks if the gradients were not finite, and else grows after enough good
  /// steps in a row.
  void update(bool was_finite);

  /// Steps that were skipped because their gradients were not finite: where an optimizer is told the number
  /// of the step, these do not count.
  std::uint64_t num_skipped() const;

  /// Live handles, "loss_scaler/scale" of f32, "loss_scaler/good_steps" and "loss_scaler/skipped_steps" of
  /// i64: what is written to them decides the next step.
  std::vector<named_tensor> state() const;
  /// Copies what `state` gave in another run. Throws std::runtime_error, and changes nothing, unless it fits.
  void load_state(const std::vector<named_tensor>& saved);

 private:
  loss_scaler_options options_;
  tensor scale_, good_steps_, skipped_steps_;
};

/// No parameter has a gradient afterwards.
void drop_gradients(std::span<parameter* const> parameters);

}  // namespace troupe::optim
