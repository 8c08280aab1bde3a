#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// The elements as another dtype; the same tensor if it has that already. Floating to floating rounds to
/// nearest, ties to even. To integers: truncated towards zero, NaN as 0, and what is out of range as the
/// nearest number in it. To bool: whether it is not zero. From bool: 0 or 1.
tensor cast(const tensor& x, dtype type);

/// y = x * scale as f32; x is u8 of any shape. Throws std::invalid_argument for another dtype.
tensor to_float(const tensor& x, float scale);

}  // namespace troupe
