#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/convert.hpp needs from a device.
struct convert_kernels {
  void (*cast)(const tensor& x, tensor& y) = nullptr;  ///< dtypes that differ
  void (*to_float)(const tensor& x, float scale, tensor& y) = nullptr;
};

}  // namespace troupe
