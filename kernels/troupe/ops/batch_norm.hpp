#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct batch_norm_options {
  double epsilon = 1e-5;  ///< added to the variance
  /// The weight of a batch in the running statistics: running = (1 - momentum) running + momentum batch.
  double momentum = 0.1;
};

// Batch normalisation of each channel over the batch and the pixels, as PyTorch's BatchNorm.
//
// - x: [N, C, ...] of f32, bf16 or f16, y and dy alike
// - weight and bias: [C], of f32 or x's dtype, or both undefined (1 and 0)
// - mean, rstd and the running statistics: f32 [C]
//
// Sums are in f64 over blocks in f32. The bits depend neither on the number of threads nor on the machine.
// Mismatches throw std::invalid_argument.

struct batch_norm_result {
  tensor y;
  tensor mean, rstd;  ///< of the batch; rstd = 1 / sqrt(variance + epsilon). For the backward functions.
};

/// y = (x - mean) rstd weight + bias, mean and variance (of all n elements, divided by n) of each channel of
/// x. The running statistics, if they are defined, become (1 - momentum) running + momentum batch, with the
/// variance divided by n - 1. Throws if a channel has fewer than two elements.
batch_norm_result batch_norm_forward(const tensor& x, const tensor& weight, const tensor& bias,
                                     tensor running_mean, tensor running_variance,
                                     const batch_norm_options& options = {});

/// y = (x - running_mean) / sqrt(running_variance + epsilon) weight + bias
tensor batch_norm_inference(const tensor& x, const tensor& weight, const tensor& bias,
                            const tensor& running_mean, const tensor& running_variance,
                            const batch_norm_options& options = {});

/// dx = weight rstd (dy - average(dy) - x' average(dy x')), x' = (x - mean) rstd, averages over each channel.
tensor batch_norm_backward_input(const tensor& dy, const tensor& x, const tensor& weight, const tensor& mean,
                                 const tensor& rstd);

/// weight_gradient = or += the sum of dy (x - mean) rstd over each channel, bias_gradient that of dy. Either
/// may be undefined; both are f32 or of x's dtype.
void batch_norm_backward_weight(const tensor& x, const tensor& dy, const tensor& mean, const tensor& rstd,
                                tensor weight_gradient, tensor bias_gradient, gradient_mode mode);

}  // namespace troupe
