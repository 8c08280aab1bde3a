#pragma once
#include "troupe/ops/attention.hpp"
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// What troupe/ops/attention.hpp needs from a device. Arguments have been checked; outputs are allocated.
/// options.scale is above 0.
struct attention_kernels {
  kernel<void(const tensor& qkv, const attention_options& options, tensor& out, tensor& log_sum_exp)> forward{
      "attention"};
  kernel<void(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
              const attention_options& options, tensor& dqkv)>
      backward{"attention_backward"};
};

}  // namespace troupe
