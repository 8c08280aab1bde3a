#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// The elements in another dtype; x itself if it has it already. Floating types round to nearest, ties to
/// even. To an integer, numbers are truncated towards zero and those out of its range become its smallest or
/// largest, NaN becomes 0. To bool, what is not 0 is true.
tensor cast(const tensor& x, dtype type);

/// y = x * scale as f32; x is u8 of any shape. Throws std::invalid_argument for another dtype.
tensor to_float(const tensor& x, float scale);

}  // namespace troupe
