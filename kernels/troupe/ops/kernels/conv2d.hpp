#pragma once
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// The extents and options of one convolution. None of the extents is 0.
struct conv2d_problem {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0;
  size_2d in, out, kernel;
  conv2d_options options;
  bool operator==(const conv2d_problem&) const = default;
};

/// What troupe/ops/conv2d.hpp needs from a device. Arguments have been checked; outputs are allocated; a bias
/// may be undefined.
struct conv2d_kernels {
  kernel<void(const conv2d_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
              tensor& y)>
      forward{"conv2d"};
  kernel<void(const conv2d_problem& problem, const tensor& dy, const tensor& weight, tensor& dx)>
      backward_input{"conv2d_backward_input"};
  kernel<void(const conv2d_problem& problem, const tensor& x, const tensor& dy, tensor& dweight,
              gradient_mode mode)>
      backward_weight{"conv2d_backward_weight"};
  kernel<void(const tensor& dy, tensor& dbias, gradient_mode mode)> backward_bias{"conv2d_backward_weight"};
};

}  // namespace troupe
