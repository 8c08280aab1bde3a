#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// y = max(x, 0), elementwise, f32 of any shape. NaN becomes 0.
tensor relu_forward(const tensor& x);

/// dx = dy where y > 0, else 0; y is what relu_forward returned. Throws std::invalid_argument unless the
/// shapes are equal.
tensor relu_backward(const tensor& dy, const tensor& y);

}  // namespace troupe
