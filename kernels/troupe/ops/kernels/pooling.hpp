#pragma once
#include "troupe/ops/pooling.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Windows over `planes` images of one channel.
struct pool2d_problem {
  std::int64_t planes = 0;
  size_2d in, out;
  pool2d_options options;
};

/// What troupe/ops/pooling.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct pooling_kernels {
  void (*max_forward)(const pool2d_problem& of, const tensor& x, tensor& y, tensor& indices) = nullptr;
  void (*max_backward)(const pool2d_problem& of, const tensor& dy, const tensor& indices,
                       tensor& dx) = nullptr;
  void (*average_forward)(const pool2d_problem& of, const tensor& x, tensor& y) = nullptr;
  void (*average_backward)(const pool2d_problem& of, const tensor& dy, tensor& dx) = nullptr;
  /// x: `planes` rows of `size` elements.
  void (*global_average_forward)(std::int64_t planes, std::int64_t size, const tensor& x,
                                 tensor& y) = nullptr;
  void (*global_average_backward)(std::int64_t planes, std::int64_t size, const tensor& dy,
                                  tensor& dx) = nullptr;
};

}  // namespace troupe
