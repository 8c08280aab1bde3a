#pragma once
#include <span>
#include <vector>

#include "troupe/autograd/parameter.hpp"

namespace troupe::optim {

struct loss_scaler_options {
  double initial_scale = 65536;         ///< > 0, finite in f32; powers of two lose no bits
  double growth_factor = 2;             ///< > 1, finite
  double backoff_factor = 0.5;          ///< in (0, 1)
  std::int64_t growth_interval = 2000;  ///< consecutive finite steps after which the scale grows, >= 1
  /// > 0: the scale is not reduced below it, or below initial_scale if that is less. Gradients that are
  /// infinite or NaN at this scale are so for another reason than the scale: see is_least().
  double least_scale = 1;
};

/// The dynamic loss scale of mixed precision (Micikevicius et al., "Mixed precision training", 2018, section
/// 3.2; the defaults are PyTorch's GradScaler's). The loss is multiplied by `scale()`, so that small
/// gradients do not underflow in f16; before the optimizer's step the gradients are divided by it. A step
/// whose gradients overflow is skipped, and the scale is reduced.
///
///   loss = scaler.scale() * loss;  backward
///   bool is_finite = scaler.unscale_and_check(parameters);
///   if (is_finite) optimizer->apply(step - scaler.num_skipped());
///   if (!is_finite && scaler.is_least()) throw ...;  // no scale helps
///   scaler.update(is_finite);
///
/// If a model has several stages, all must take the same decision: combine their results, and call
/// `drop_gradients` in stages whose own gradients were finite, before `update`.
class loss_scaler {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit loss_scaler(loss_scaler_options options = {});

  double scale() const;
  /// Whether the scale cannot be reduced any more: what is not finite now stays so.
  bool is_least() const;
  /// Divides the gradients of the parameters that have one by the scale. If one of them is infinite or NaN,
  /// before or after, returns false, and no parameter has a gradient afterwards.
  bool unscale_and_check(std::span<parameter* const> parameters) const;
  /// Call after each step: reduces the scale if the gradients were not finite, and increases it after
  /// growth_interval consecutive finite steps.
  void update(bool was_finite);

  /// The number of steps skipped because of non-finite gradients; they do not count in the step number that
  /// is passed to an optimizer.
  std::uint64_t num_skipped() const;

  /// Handles to the state, "loss_scaler/scale" of f32, "loss_scaler/good_steps" and
  /// "loss_scaler/skipped_steps" of i64: values written to them take effect in the next step.
  std::vector<named_tensor> state() const;
  /// Restores a saved `state`. Throws std::runtime_error and changes nothing if names, shapes or dtypes
  /// differ.
  void load_state(const std::vector<named_tensor>& saved);

 private:
  float least_scale() const;

  loss_scaler_options options_;
  tensor scale_, good_steps_, skipped_steps_;
};

/// Discards the gradients of the parameters.
void drop_gradients(std::span<parameter* const> parameters);

}  // namespace troupe::optim
