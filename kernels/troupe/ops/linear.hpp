#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// The affine map of each row (torch.nn.functional.linear). x: [..., in], weight: [out, in], bias: [out] or
// undefined, y: [..., out], all of one dtype: f32, bf16 or f16. Sums are in f32 and rounded once. Equal
// shapes and numbers of threads give equal bits. Mismatches throw std::invalid_argument.

/// The activation fused into the affine map.
enum class linear_activation : std::uint8_t { none, relu };

/// y = x weight^T + bias, or max(x weight^T + bias, 0), whose gradient is that of relu_backward.
tensor linear_forward(const tensor& x, const tensor& weight, const tensor& bias,
                      linear_activation activation = linear_activation::none);

/// dx = dy weight
tensor linear_backward_input(const tensor& dy, const tensor& weight);

/// weight_gradient (+)= dy^T x and bias_gradient (+)= the sum of the rows of dy, taken in fixed blocks in
/// ascending order; either may be undefined. x and dy are of one dtype; the gradients are f32 always.
void linear_backward_weight(const tensor& x, const tensor& dy, tensor weight_gradient, tensor bias_gradient,
                            gradient_mode mode = gradient_mode::accumulate);

/// bias_gradient alone.
void linear_backward_bias(const tensor& dy, tensor bias_gradient,
                          gradient_mode mode = gradient_mode::accumulate);

}  // namespace troupe
