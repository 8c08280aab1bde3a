#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/batch_norm.hpp"

namespace troupe::cuda {

// Bias and ReLU of a convolution with output y [batch, channels, size].

/// y += bias [channels], unless it is undefined, and with `relu` then max(y, 0), where NaN stays. One kernel,
/// or none if there is nothing to do.
void add_channel_bias(const batch_norm_problem& problem, const tensor& bias, bool relu, tensor& y);

/// gradient [channels] (+)= the sum of each channel of dy.
void sum_channels(const batch_norm_problem& problem, const tensor& dy, tensor& gradient, gradient_mode mode);

}  // namespace troupe::cuda
