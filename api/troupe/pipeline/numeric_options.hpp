#pragma once
#include "troupe/optim/loss_scaler.hpp"
#include "troupe/program/non_finite_policy.hpp"
#include "troupe/tensor/dtype.hpp"

namespace troupe {

/// The precision in which a pipeline computes, and how gradients are treated before the optimizer's step.
struct numeric_options {
  /// f32, bf16 or f16: the dtype of matrix products, convolutions and attention; weights stay f32
  /// (troupe/autograd/autocast.hpp). Activations and gradients pass between stages in the dtype that the
  /// layers produce.
  dtype precision = dtype::f32;
  /// Maximum norm over all gradients of the model; 0: no clipping.
  double clip_grad_norm = 0;
  /// Dynamic loss scale, used in f16 only, where small gradients would underflow. A step whose gradients
  /// overflow is skipped.
  optim::loss_scaler_options loss_scale = {};

  /// f32, bf16 or f16: the dtype in which the replicas of a pipeline exchange gradients. In 16 bits each
  /// replica rounds its own before they are added up in f32, and the sums once.
  dtype gradient_sync = dtype::f32;
  /// The fraction of each large weight's gradient that a replica sends, in (0, 1]: its elements of largest
  /// magnitude. It adds the others to the gradient of its next step. 0: all elements.
  double top_k_gradients = 0;
  /// The rank of the two factors as which a replica sends the gradient of each large weight matrix
  /// (gradients/factored_gradient.hpp). It adds what they lack to the gradient of its next step. 0: all
  /// elements.
  int power_sgd_rank = 0;
  /// Local SGD: a replica steps with its own gradients, and after every so many optimizer steps the replicas
  /// average their weights. 0: they exchange gradients in each step.
  int average_every = 0;

  non_finite_policy on_non_finite = non_finite_policy::stop;

  bool scales_loss() const { return precision == dtype::f16; }
  /// Whether each stage needs the norm over all gradients before its step.
  bool needs_norm() const { return skips_steps() || clip_grad_norm > 0; }
  /// Whether steps whose gradients are not finite are skipped.
  bool skips_steps() const { return scales_loss() || on_non_finite == non_finite_policy::skip; }
};

}  // namespace troupe
