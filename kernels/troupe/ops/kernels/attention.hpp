#pragma once
#include "troupe/ops/attention.hpp"

namespace troupe {

/// What troupe/ops/attention.hpp needs from a device. Arguments have been checked; outputs are allocated.
/// options.scale is above 0.
struct attention_kernels {
  void (*forward)(const tensor& qkv, const attention_options& options, tensor& out,
                  tensor& log_sum_exp) = nullptr;
  void (*backward)(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
                   const attention_options& options, tensor& dqkv) = nullptr;
};

}  // namespace troupe
