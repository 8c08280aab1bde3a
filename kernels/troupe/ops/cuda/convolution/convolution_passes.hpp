#pragma once

#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/batch_norm.hpp"
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cuda {

// What a convolution is made of.

enum class convolution_pass : std::uint8_t { forward, input_gradient, weight_gradient };

/// Queues one convolution pass by cuDNN; of x, weight and y (or their gradients), one is the result, written
/// as `mode` says. The weight gradient is computed in f32. Returns false, with nothing queued, if cuDNN has
/// no deterministic algorithm for the problem or is not installed; this depends only on problem, alignment
/// and numeric class. Throws cuda_error, naming the problem, if cuDNN fails. Implemented in cudnn/ or
/// cudnn_absent/, as configured.
bool cudnn_convolution(convolution_pass pass, const conv2d_problem& problem, const tensor& x,
                       const tensor& weight, const tensor& y, gradient_mode mode = gradient_mode::assign);

// Direct convolution kernels, used where cuDNN has no algorithm. Operands are as in
// troupe/ops/kernels/conv2d.hpp, of f32, bf16 or f16. Sums are in f32, in an order that depends only on the
// problem. Neither adds a bias nor applies relu.

/// y [N, O, OH, OW] = the sums over x's windows.
void direct_forward(const conv2d_problem& problem, const tensor& x, const tensor& weight, tensor& y);

/// dx [N, C, H, W] = the sums over the windows that a pixel is in.
void direct_input_gradient(const conv2d_problem& problem, const tensor& dy, const tensor& weight, tensor& dx);

/// dweight [O, C / groups, KH, KW] (+)= the sums over all windows. dweight: f32 or the dtype of x.
void direct_weight_gradient(const conv2d_problem& problem, const tensor& x, const tensor& dy, tensor& dweight,
                            gradient_mode mode);

// Bias and ReLU of a convolution with output y [batch, channels, size].

/// y += bias [channels], unless it is undefined, and with `relu` then max(y, 0), where NaN stays. One kernel,
/// or none if there is nothing to do.
void add_channel_bias(const batch_norm_problem& problem, const tensor& bias, bool relu, tensor& y);

/// gradient [channels] (+)= the sum of each channel of dy.
void sum_channels(const batch_norm_problem& problem, const tensor& dy, tensor& gradient, gradient_mode mode);

}  // namespace troupe::cuda
