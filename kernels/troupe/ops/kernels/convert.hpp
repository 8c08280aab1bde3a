#pragma once
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/convert.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct convert_kernels {
  kernel<void(const tensor& x, tensor& y)> cast{"cast"};
  kernel<void(const tensor& x, float scale, tensor& y)> to_float{"to_float"};
};

}  // namespace troupe
