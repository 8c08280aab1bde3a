#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// y = x * scale as f32; x is u8 of any shape. Throws std::invalid_argument for another dtype.
tensor to_float(const tensor& x, float scale);

}  // namespace troupe
