#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/convert.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct convert_kernels {
  void (*cast)(const tensor& x, tensor& y) = nullptr;
  void (*to_float)(const tensor& x, float scale, tensor& y) = nullptr;
};

}  // namespace troupe
