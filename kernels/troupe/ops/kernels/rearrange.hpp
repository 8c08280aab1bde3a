#pragma once
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/rearrange.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct rearrange_kernels {
  /// Copies [:, from_first : from_first + count, :] to [:, to_first : to_first + count, :] between tensors of
  /// three axes that agree in the first and the last.
  void (*copy_range)(const tensor& from, std::int64_t from_first, tensor& to, std::int64_t to_first,
                     std::int64_t count) = nullptr;
  /// Axis i of y is axis axes[i] of x.
  void (*transpose)(const tensor& x, const std::vector<int>& axes, tensor& y) = nullptr;
};

}  // namespace troupe
