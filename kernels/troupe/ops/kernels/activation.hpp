#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/activation.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct activation_kernels {
  void (*relu_forward)(const tensor& x, tensor& y) = nullptr;
  void (*relu_backward)(const tensor& dy, const tensor& y, tensor& dx) = nullptr;
};

}  // namespace troupe
