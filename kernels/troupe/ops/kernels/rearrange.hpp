#pragma once
#include <span>
#include <vector>

#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/rearrange.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct rearrange_kernels {
  /// Copies [:, from_first : from_first + count, :] to [:, to_first : to_first + count, :] between tensors of
  /// three axes that agree in the first and the last.
  kernel<void(const tensor& from, std::int64_t from_first, tensor& to, std::int64_t to_first,
              std::int64_t count)>
      copy_range{"slice"};
  /// Concatenates the parts along the second of three axes; the first and last extents are equal.
  kernel<void(std::span<const tensor> parts, tensor& to)> concat{"concat"};
  /// Axis i of y is axis axes[i] of x.
  kernel<void(const tensor& x, const std::vector<int>& axes, tensor& y)> transpose{"transpose"};
};

}  // namespace troupe
