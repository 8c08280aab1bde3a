#pragma once
#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/ops/matmul.hpp"

namespace troupe {

/// What troupe/ops/matmul.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct matmul_kernels {
  kernel<void(const tensor& a, const tensor& b, tensor& c, gradient_mode mode, const matmul_options& options)>
      multiply{"matmul"};
};

}  // namespace troupe
