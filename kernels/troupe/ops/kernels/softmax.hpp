#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/softmax.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct softmax_kernels {
  using forward = void (*)(const tensor& x, tensor& y);
  using backward = void (*)(const tensor& dy, const tensor& y, tensor& dx);

  forward softmax_forward = nullptr;
  backward softmax_backward = nullptr;
  forward log_softmax_forward = nullptr;
  backward log_softmax_backward = nullptr;
};

}  // namespace troupe
