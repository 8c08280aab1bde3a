#pragma once
#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/ops/linear.hpp"

namespace troupe {

/// What troupe/ops/linear.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct linear_kernels {
  kernel<void(const tensor& x, const tensor& weight, const tensor& bias, linear_activation activation,
              tensor& y)>
      forward{"linear"};
  kernel<void(const tensor& dy, const tensor& weight, tensor& dx)> backward_input{"linear_backward_input"};
  kernel<void(const tensor& x, const tensor& dy, tensor& weight_gradient, tensor& bias_gradient,
              gradient_mode mode)>
      backward_weight{"linear_backward_weight"};
};

}  // namespace troupe
