#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct top_k_result {
  tensor values;   ///< [..., k], of the dtype of x, descending
  tensor indices;  ///< [..., k] i64: their indices along the last axis of x
};

/// The k largest along the last axis of x: [..., N] of f32, bf16 or f16. Of equal values the one with the
/// lower index comes first; NaN is larger than all numbers. Throws std::invalid_argument unless 0 <= k <= N.
top_k_result top_k(const tensor& x, std::int64_t k);

}  // namespace troupe
