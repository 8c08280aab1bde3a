#pragma once
#include "troupe/ops/matmul.hpp"

namespace troupe {

/// What troupe/ops/matmul.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct matmul_kernels {
  void (*multiply)(const tensor& a, const tensor& b, tensor& c, gradient_mode mode,
                   const matmul_options& options) = nullptr;
};

}  // namespace troupe
