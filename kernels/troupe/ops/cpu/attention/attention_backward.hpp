#pragma once
#include "troupe/ops/attention.hpp"

namespace troupe::cpu {

void attention_backward(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
                        const attention_options& options, tensor& dqkv);

}  // namespace troupe::cpu
