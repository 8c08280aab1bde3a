#pragma once
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/top_k.hpp needs from a device. Arguments have been checked; outputs are allocated and not
/// empty.
struct top_k_kernels {
  kernel<void(const tensor& x, tensor& values, tensor& indices)> select{"top_k"};
};

}  // namespace troupe
