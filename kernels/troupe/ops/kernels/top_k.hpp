#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/top_k.hpp needs from a device. Arguments have been checked; outputs are allocated and not
/// empty.
struct top_k_kernels {
  void (*select)(const tensor& x, tensor& values, tensor& indices) = nullptr;
};

}  // namespace troupe
