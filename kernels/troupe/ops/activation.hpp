#pragma once
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Elementwise; x of any shape in f32, bf16 or f16, the arithmetic in f32. Results have x's shape and dtype.
// Backward functions throw std::invalid_argument unless both arguments agree in dtype, shape and device.

/// y = max(x, 0); NaN stays.
tensor relu_forward(const tensor& x);

/// dx = 0 where y <= 0, else dy; y is what relu_forward returned.
tensor relu_backward(const tensor& dy, const tensor& y);

/// Hendrycks, Gimpel, "Gaussian error linear units", 2016: `exact` is x Phi(x) with the normal distribution's
/// Phi(x) = (1 + erf(x / sqrt 2)) / 2; `tanh` is the paper's approximation,
///   x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
enum class gelu_kind : std::uint8_t { exact, tanh };

tensor gelu_forward(const tensor& x, gelu_kind kind);

/// dx = dy (Phi(x) + x phi(x)) for `exact`, the approximation's own derivative for `tanh`.
tensor gelu_backward(const tensor& dy, const tensor& x, gelu_kind kind);

/// y = x s with s = 1 / (1 + e^-x).
tensor silu_forward(const tensor& x);

/// dx = dy s (1 + x (1 - s))
tensor silu_backward(const tensor& dy, const tensor& x);

tensor tanh_forward(const tensor& x);

/// dx = dy (1 - y^2); y is what tanh_forward returned.
tensor tanh_backward(const tensor& dy, const tensor& y);

/// y = 1 / (1 + e^-x)
tensor sigmoid_forward(const tensor& x);

/// dx = dy y (1 - y); y is what sigmoid_forward returned.
tensor sigmoid_backward(const tensor& dy, const tensor& y);

}  // namespace troupe
