#pragma once
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/activation.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct activation_kernels {
  using forward = kernel<void(const tensor& x, tensor& y)>;
  /// `from` is the second argument of the public function of that name (x or y).
  using backward = kernel<void(const tensor& dy, const tensor& from, tensor& dx)>;

  forward relu_forward{"relu"};
  backward relu_backward{"relu_backward"};
  forward gelu_forward{"gelu"};
  backward gelu_backward{"gelu_backward"};
  forward gelu_tanh_forward{"gelu"};
  backward gelu_tanh_backward{"gelu_backward"};
  forward silu_forward{"silu"};
  backward silu_backward{"silu_backward"};
  forward tanh_forward{"tanh"};
  backward tanh_backward{"tanh_backward"};
  forward sigmoid_forward{"sigmoid"};
  backward sigmoid_backward{"sigmoid_backward"};
};

}  // namespace troupe
