#pragma once
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cuda {

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

}  // namespace troupe::cuda
