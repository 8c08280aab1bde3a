#pragma once
#include "troupe/random/philox.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// y[i] = x[i] / (1 - p) where word i of the stream is at least p 2^32 (rounded down), else 0: each element
/// is kept with probability 1 - p. Where x is infinite or NaN, an element that is not kept is NaN. x of any
/// shape in f32, bf16 or f16, the arithmetic in f32; y has x's shape and dtype. The backward pass is the same
/// call with dy for x. Throws std::invalid_argument unless p is in [0, 1) and x has no more than 2^34
/// elements.
tensor dropout(const tensor& x, double p, const philox_stream& stream);

}  // namespace troupe
