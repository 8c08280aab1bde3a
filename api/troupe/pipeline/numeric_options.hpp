#pragma once
#include "troupe/config/replica_exchange_options.hpp"
#include "troupe/data_parallel/shard_strategy.hpp"
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

  /// What replicas of the pipeline exchange.
  replica_exchange_options exchange = {};
  /// What they divide among themselves.
  shard_strategy shard = shard_strategy::none;

  non_finite_policy on_non_finite = non_finite_policy::stop;

  bool scales_loss() const { return precision == dtype::f16; }
  /// Whether each stage needs the norm over all gradients before its step.
  bool needs_norm() const { return skips_steps() || clip_grad_norm > 0; }
  /// Whether steps whose gradients are not finite are skipped.
  bool skips_steps() const { return scales_loss() || on_non_finite == non_finite_policy::skip; }
};

}  // namespace troupe
