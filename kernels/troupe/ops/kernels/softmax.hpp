#pragma once
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/softmax.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct softmax_kernels {
  using forward = kernel<void(const tensor& x, tensor& y)>;
  using backward = kernel<void(const tensor& dy, const tensor& y, tensor& dx)>;

  forward softmax_forward{"softmax"};
  backward softmax_backward{"softmax_backward"};
  forward log_softmax_forward{"log_softmax"};
  backward log_softmax_backward{"log_softmax_backward"};
};

}  // namespace troupe
