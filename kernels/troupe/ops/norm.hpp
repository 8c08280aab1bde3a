#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Normalisation of rows.
//
// - x: [..., C] with C >= 1 in f32, bf16 or f16; its last axis is a row
// - gamma and beta: floating [C] of any dtype, or undefined without scale or shift
// - their gradients: floating [C], or undefined if not needed
// - mean and rstd: f32 with x's shape less the last axis
//
// Arithmetic and sums are f32; sums over rows go in blocks of fixed size, in order. Other shapes and dtypes
// throw std::invalid_argument.

struct layer_norm_result {
  tensor y;     ///< of x's shape and dtype
  tensor mean;  ///< [...] mean of each row
  tensor rstd;  ///< 1 / sqrt(variance + eps), the variance divided by C
};

/// y = (x - mean) rstd gamma + beta (Ba, Kiros, Hinton, "Layer normalization", 2016).
layer_norm_result layer_norm_forward(const tensor& x, const tensor& gamma, const tensor& beta, double eps);

/// With n = (x - mean) rstd, g = dy gamma and means over the row: dx = rstd (g - mean(g) - n mean(g n)).
tensor layer_norm_backward_input(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& mean,
                                 const tensor& rstd);

/// dgamma: the sum over rows of dy n; dbeta: the sum over rows of dy.
void layer_norm_backward_weight(const tensor& dy, const tensor& x, const tensor& mean, const tensor& rstd,
                                tensor dgamma, tensor dbeta, gradient_mode mode);

struct rms_norm_result {
  tensor y;
  tensor rstd;  ///< 1 / sqrt(mean(x^2) + eps)
};

/// y = x rstd gamma (Zhang, Sennrich, "Root mean square layer normalization", 2019).
rms_norm_result rms_norm_forward(const tensor& x, const tensor& gamma, double eps);

/// With n = x rstd and g = dy gamma: dx = rstd (g - n mean(g n)).
tensor rms_norm_backward_input(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& rstd);

/// dgamma: the sum over rows of dy n.
void rms_norm_backward_weight(const tensor& dy, const tensor& x, const tensor& rstd, tensor dgamma,
                              gradient_mode mode);

}  // namespace troupe
