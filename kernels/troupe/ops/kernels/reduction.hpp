#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// x seen as [outer, count, inner], of which `count` is reduced.
struct reduced_axis {
  std::int64_t outer = 1, count = 1, inner = 1;
};

/// What troupe/ops/reduction.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct reduction_kernels {
  /// y: [outer, inner] of any floating dtype; count >= 1.
  using reduce = kernel<void(const tensor& x, const reduced_axis& along, tensor& y)>;

  /// y is the sum times `factor`.
  kernel<void(const tensor& x, const reduced_axis& along, float factor, tensor& y)> sum{"sum"};
  reduce max{"max"};
  reduce min{"min"};
  /// The first index at which x is its maximum, NaN being larger than all numbers. index: [outer, inner] of
  /// i64; count >= 1.
  kernel<void(const tensor& x, const reduced_axis& along, tensor& index)> argmax{"argmax"};

  kernel<double(const tensor& x)> total_sum{"total_sum"};
  kernel<double(std::span<const tensor> tensors)> sum_of_squares{"global_norm"};
  kernel<std::vector<double>(std::span<const tensor> tensors)> block_squares{"block_squares"};
  kernel<bool(std::span<const tensor> tensors)> all_finite{"all_finite"};
  kernel<bool(std::span<const tensor> tensors, float factor)> scale_all{"scale_all"};
};

}  // namespace troupe
