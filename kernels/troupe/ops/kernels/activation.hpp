#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/activation.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct activation_kernels {
  using forward = void (*)(const tensor& x, tensor& y);
  /// `from` is what the public function of that name takes beside dy.
  using backward = void (*)(const tensor& dy, const tensor& from, tensor& dx);

  forward relu_forward = nullptr;
  backward relu_backward = nullptr;
  forward gelu_forward = nullptr;
  backward gelu_backward = nullptr;
  forward gelu_tanh_forward = nullptr;
  backward gelu_tanh_backward = nullptr;
  forward silu_forward = nullptr;
  backward silu_backward = nullptr;
  forward tanh_forward = nullptr;
  backward tanh_backward = nullptr;
  forward sigmoid_forward = nullptr;
  backward sigmoid_backward = nullptr;
};

}  // namespace troupe
