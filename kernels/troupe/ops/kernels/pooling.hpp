#pragma once
#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/ops/pooling.hpp"

namespace troupe {

/// Windows over `planes` images of one channel.
struct pool2d_problem {
  std::int64_t planes = 0;
  size_2d in, out;
  pool2d_options options;
};

/// What troupe/ops/pooling.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct pooling_kernels {
  kernel<void(const pool2d_problem& problem, const tensor& x, tensor& y, tensor& indices)> max_forward{
      "max_pool2d"};
  kernel<void(const pool2d_problem& problem, const tensor& dy, const tensor& indices, tensor& dx)>
      max_backward{"max_pool2d_backward"};
  kernel<void(const pool2d_problem& problem, const tensor& x, tensor& y)> average_forward{"average_pool2d"};
  kernel<void(const pool2d_problem& problem, const tensor& dy, tensor& dx)> average_backward{
      "average_pool2d_backward"};
  /// x: `planes` rows of `size` elements.
  kernel<void(std::int64_t planes, std::int64_t size, const tensor& x, tensor& y)> global_average_forward{
      "global_average_pool2d"};
  kernel<void(std::int64_t planes, std::int64_t size, const tensor& dy, tensor& dx)> global_average_backward{
      "global_average_pool2d_backward"};
};

}  // namespace troupe
