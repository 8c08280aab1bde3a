#include "troupe/ops/cuda/attention/attention_passes.hpp"
#include "troupe/ops/cuda/kernel_tables.hpp"
#include "troupe/ops/matmul_precision.hpp"

namespace troupe::cuda {
namespace {

bool is_for_tensor_cores(const tensor& out, const attention_options& options) {
  auto width = out.shape()[2] / options.num_heads;
  if (out.dtype() != dtype::f32) return width <= widest_16_bit_head;
  return current_matmul_precision() == matmul_precision::tf32 && width <= widest_tf32_head;
}

void forward(const tensor& qkv, const attention_options& options, tensor& out, tensor& log_sum_exp) {
  auto pass =
      is_for_tensor_cores(out, options) ? attention_forward_on_tensor_cores : attention_forward_in_f32;
  pass(qkv, options, out, log_sum_exp);
}

void backward(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
              const attention_options& options, tensor& dqkv) {
  auto row_sums = attention_row_sums(dout, out, log_sum_exp);
  auto pass =
      is_for_tensor_cores(out, options) ? attention_backward_on_tensor_cores : attention_backward_in_f32;
  pass(dout, qkv, row_sums, options, dqkv);
}

}  // namespace

attention_kernels attention() { return {.forward = forward, .backward = backward}; }

}  // namespace troupe::cuda
