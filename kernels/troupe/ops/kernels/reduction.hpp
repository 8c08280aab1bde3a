#pragma once
#include <cstdint>
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// x seen as [outer, count, inner], of which `count` is reduced.
struct reduced_axis {
  std::int64_t outer = 1, count = 1, inner = 1;
};

/// What troupe/ops/reduction.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct reduction_kernels {
  /// y: [outer, inner] of any floating dtype; count >= 1.
  using reduce = void (*)(const tensor& x, const reduced_axis& along, tensor& y);

  /// y is the sum times `factor`.
  void (*sum)(const tensor& x, const reduced_axis& along, float factor, tensor& y) = nullptr;
  reduce max = nullptr;
  reduce min = nullptr;
  /// The first index at which x is `largest`, its f32 maximum, or NaN. index: [outer, inner] of i64.
  void (*argmax)(const tensor& x, const reduced_axis& along, const tensor& largest, tensor& index) = nullptr;

  double (*total_sum)(const tensor& x) = nullptr;
  double (*sum_of_squares)(std::span<const tensor> of) = nullptr;
  bool (*all_finite)(std::span<const tensor> of) = nullptr;
  bool (*scale_all)(std::span<const tensor> of, float factor) = nullptr;
};

}  // namespace troupe
