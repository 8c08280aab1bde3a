#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// The affine map of each row. x: [B, in], weight: [out, in], bias: [out] or undefined, y: [B, out], all f32.
// Equal shapes and numbers of threads give equal bits. Mismatches throw std::invalid_argument.

/// y = x weight^T + bias
tensor linear_forward(const tensor& x, const tensor& weight, const tensor& bias);

/// dx = dy weight
tensor linear_backward_input(const tensor& dy, const tensor& weight);

/// weight_gradient += dy^T x, and bias_gradient += the rows of dy, in order, if it is defined.
void linear_backward_weight(const tensor& x, const tensor& dy, tensor weight_gradient, tensor bias_gradient);

}  // namespace troupe
