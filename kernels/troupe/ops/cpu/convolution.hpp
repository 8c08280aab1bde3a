#pragma once
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cpu {

// Convolutions of one dtype, without ReLU. Tensors have the layout [N, C, H, W]; weight gradients are f32 and
// overwritten.

/// Whether the functions below support this dtype on this machine; f32 is always supported.
bool convolution_takes(dtype type);

void convolution_forward(const conv2d_problem& problem, const tensor& x, const tensor& weight,
                         const tensor& bias, tensor& y);
void convolution_backward_input(const conv2d_problem& problem, const tensor& dy, const tensor& weight,
                                tensor& dx);
/// dbias may be undefined.
void convolution_backward_weight(const conv2d_problem& problem, const tensor& x, const tensor& dy,
                                 tensor& dweight, tensor& dbias);

}  // namespace troupe::cpu
