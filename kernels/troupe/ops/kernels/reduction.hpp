#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/reduction.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct reduction_kernels {
  /// y f32 [outer, inner] from the middle axis of x [outer, size, inner] of f32, bf16 or f16.
  using reduce = void (*)(const tensor& x, tensor& y);

  reduce sum = nullptr;
  reduce max = nullptr;
  reduce min = nullptr;
  reduce argmax = nullptr;  ///< y is i64
  double (*total_sum)(const tensor& x) = nullptr;
  double (*sum_of_squares)(const tensor& x) = nullptr;
  double (*num_non_finite)(const tensor& x) = nullptr;
};

}  // namespace troupe
