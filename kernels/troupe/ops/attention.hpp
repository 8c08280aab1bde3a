#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct attention_options {
  int num_heads = 1;
  /// Causal mask: a position attends only to itself and earlier positions.
  bool causal = true;
  /// Factor of the scores, >= 0; 0 means 1 / sqrt(D).
  float scale = 0;
};

struct attention_result {
  tensor out;          ///< [B, T, C], of the dtype of qkv
  tensor log_sum_exp;  ///< [B, H, T] f32: the logarithm of each softmax's denominator
};

/// Scaled dot-product attention of H heads of width D, C = H D, over packed queries, keys and values. qkv:
/// [B, T, 3 C] or [B, T, 3, H, D] of f32, bf16 or f16.
///   out[t] = sum over s of softmax_s(scale q[t] . k[s]) v[s]
/// Computes block by block with an online softmax, so that no T x T matrix is stored (Dao et al.,
/// FlashAttention, 2022); scores are f32. GPUs multiply bf16 and f16 heads of up to 128 elements on tensor
/// cores, with sums in f32. The bits do not depend on the number of threads. Mismatched shapes or dtypes
/// throw std::invalid_argument.
attention_result attention_forward(const tensor& qkv, const attention_options& options);

/// The gradient of qkv, of its shape and dtype, from that of `out`; `out` and `log_sum_exp` are what
/// attention_forward returned.
tensor attention_backward(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
                          const attention_options& options);

}  // namespace troupe
