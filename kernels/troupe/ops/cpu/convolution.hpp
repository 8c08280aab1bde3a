#pragma once
#include "troupe/ops/kernels/conv2d.hpp"

namespace troupe::cpu {

// Convolutions of one dtype, without the ReLU that may follow. Tensors are plain ([N, C, H, W]); weight
// gradients are f32 and written over.

/// Whether the functions below take tensors of this dtype here and now; f32 they always do.
bool convolution_takes(dtype type);

void convolution_forward(const conv2d_problem& of, const tensor& x, const tensor& weight, const tensor& bias,
                         tensor& y);
void convolution_backward_input(const conv2d_problem& of, const tensor& dy, const tensor& weight, tensor& dx);
/// dbias may be undefined.
void convolution_backward_weight(const conv2d_problem& of, const tensor& x, const tensor& dy, tensor& dweight,
                                 tensor& dbias);

}  // namespace troupe::cpu
