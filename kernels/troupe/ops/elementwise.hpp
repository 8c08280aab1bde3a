#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

// Two operands broadcast by NumPy's rule and must be on one device. Of two floating dtypes (f32, bf16, f16)
// the result has the common one, or f32 if they differ; arithmetic is f32. Integer operands (i64 or i32) must
// agree in dtype, and wrap around. Other arguments throw std::invalid_argument.

tensor add(const tensor& a, const tensor& b);
tensor subtract(const tensor& a, const tensor& b);
tensor multiply(const tensor& a, const tensor& b);
/// Floating operands only.
tensor divide(const tensor& a, const tensor& b);
/// NaN if an operand is.
tensor minimum(const tensor& a, const tensor& b);
tensor maximum(const tensor& a, const tensor& b);

/// a == b, a < b and a > b, element by element, as bool; false with NaN.
tensor equal(const tensor& a, const tensor& b);
tensor less(const tensor& a, const tensor& b);
tensor greater(const tensor& a, const tensor& b);

/// a where the bool `condition` holds, else b; all three broadcast. a and b are floating.
tensor where(const tensor& condition, const tensor& a, const tensor& b);

/// x, f32, bf16 or f16, repeated along the axes by which its shape differs from `extents`.
tensor broadcast_to(const tensor& x, const shape& extents);

/// Its inverse: sums a gradient, f32, bf16 or f16, back over the axes along which an operand of shape
/// `extents` was repeated to give the gradient's shape.
tensor reduce_to_shape(const tensor& gradient, const shape& extents);

// Element by element, x of f32, bf16 or f16; within 2 units in the last place of f32.

tensor exp(const tensor& x);
tensor log(const tensor& x);
tensor sqrt(const tensor& x);
tensor negate(const tensor& x);
tensor abs(const tensor& x);
tensor reciprocal(const tensor& x);

tensor add(const tensor& x, float number);
tensor multiply(const tensor& x, float number);
/// min(max(x, low), high); NaN stays. Throws std::invalid_argument unless low <= high.
tensor clamp(const tensor& x, float low, float high);

/// y += alpha * x, of one shape, floating.
void axpy(float alpha, const tensor& x, tensor y);
/// x *= factor, floating.
void scale(tensor x, float factor);

}  // namespace troupe
