#pragma once
#include "troupe/ops/cpu/product/product_loops.hpp"
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cpu {

// Convolutions of f32 as matrix products over windows that are packed from zero-padded images (implicit
// GEMM). Tensors have the layout [N, C, H, W]; weight gradients are overwritten. Elements are sums as in
// packed_product (troupe/ops/cpu/product/), whose inner axis is
//
//   y         (c, k, l): the group's input channels and the rows and columns of the kernel;
//   dx        (o, k, l): the group's output channels and those k and l that reach the pixel;
//   dweight   (n, i, j): images and their windows.
//
// Weights are also multiplied with the zeros of the padding. dbias is the sum of
// planes in lanes (lanes.hpp), added up in f64 and rounded once.

void convolution_forward(const conv2d_problem& problem, const tensor& x, const tensor& weight,
                         const tensor& bias, tensor& y, const product_loops& loops = fastest_product_loops());
void convolution_backward_input(const conv2d_problem& problem, const tensor& dy, const tensor& weight,
                                tensor& dx, const product_loops& loops = fastest_product_loops());
void convolution_backward_weight(const conv2d_problem& problem, const tensor& x, const tensor& dy,
                                 tensor& dweight, const product_loops& loops = fastest_product_loops());
void convolution_backward_bias(const tensor& dy, tensor& dbias);

}  // namespace troupe::cpu
