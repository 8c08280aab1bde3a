#pragma once
#include "troupe/optim/loss_scaler.hpp"
#include "troupe/program/non_finite_policy.hpp"
#include "troupe/tensor/dtype.hpp"

namespace troupe {

/// In which precision a pipeline computes, and what it does with gradients before the optimizer's step.
struct numerics {
  /// f32, bf16 or f16: products compute in it from weights that stay f32 (troupe/autograd/autocast.hpp).
  /// Activations and gradients go from stage to stage in the dtype in which the layers give them.
  dtype precision = dtype::f32;
  /// The norm of all gradients of the model together is at most this; 0: whatever it is.
  double clip_grad_norm = 0;
  /// Of f16 only: small gradients would vanish, and a step whose gradients overflow is skipped.
  optim::loss_scaler_options loss_scale = {};

  non_finite_policy on_non_finite = non_finite_policy::stop;

  bool scales_loss() const { return precision == dtype::f16; }
  /// Whether each stage must know the norm of all gradients before its step.
  bool needs_norm() const { return skips_steps() || clip_grad_norm > 0; }
  /// Whether a step whose gradients are not finite is left out.
  bool skips_steps() const { return scales_loss() || on_non_finite == non_finite_policy::skip; }
};

}  // namespace troupe
