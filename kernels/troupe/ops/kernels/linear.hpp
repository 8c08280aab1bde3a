#pragma once
#include "troupe/ops/linear.hpp"

namespace troupe {

/// What troupe/ops/linear.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct linear_kernels {
  void (*forward)(const tensor& x, const tensor& weight, const tensor& bias, linear_activation activation,
                  tensor& y) = nullptr;
  void (*backward_input)(const tensor& dy, const tensor& weight, tensor& dx) = nullptr;
  void (*backward_weight)(const tensor& x, const tensor& dy, tensor& weight_gradient, tensor& bias_gradient,
                          gradient_mode mode) = nullptr;
};

}  // namespace troupe
