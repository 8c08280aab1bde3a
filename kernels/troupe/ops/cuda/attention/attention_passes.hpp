#pragma once
#include "troupe/ops/attention.hpp"

namespace troupe::cuda {

// The kernels of attention. options.scale > 0.

/// For each query two numbers of the backward pass, f32 [B, H, T, 2]: its log_sum_exp to the base of 2, and
/// delta, the sum over the head's elements of dout out.
tensor attention_row_sums(const tensor& dout, const tensor& out, const tensor& log_sum_exp);

/// The widest heads whose rows fit into the registers of the kernels on tensor cores, in elements.
constexpr int widest_16_bit_head = 128, widest_tf32_head = 64;

/// For bf16 or f16, or for f32, whose operands are rounded to TF32.
void attention_forward_on_tensor_cores(const tensor& qkv, const attention_options& options, tensor& out,
                                       tensor& log_sum_exp);
void attention_backward_on_tensor_cores(const tensor& dout, const tensor& qkv, const tensor& row_sums,
                                        const attention_options& options, tensor& dqkv);

/// Products and sums in f32, for every floating dtype and heads of any width.
void attention_forward_in_f32(const tensor& qkv, const attention_options& options, tensor& out,
                              tensor& log_sum_exp);
void attention_backward_in_f32(const tensor& dout, const tensor& qkv, const tensor& row_sums,
                               const attention_options& options, tensor& dqkv);

}  // namespace troupe::cuda
