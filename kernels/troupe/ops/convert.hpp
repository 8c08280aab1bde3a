#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Converts elements to `type`; returns x itself if it has that dtype. Floating types round to nearest, ties
/// to even. Conversion to integers truncates towards zero and saturates; NaN becomes 0. Conversion to bool
/// gives x != 0.
tensor cast(const tensor& x, dtype type);

/// y = x * scale as f32; x is u8 of any shape. Throws std::invalid_argument for another dtype.
tensor to_float(const tensor& x, float scale);

}  // namespace troupe
