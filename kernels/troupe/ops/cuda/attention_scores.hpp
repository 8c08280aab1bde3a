#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe::cuda {

// Between attention's matrix products, for some heads of one sample: tensors are [heads, T, T] or [heads, T].

struct score_options {
  float scale;
  bool causal;  ///< query t sees the keys 0 to t only
};

/// probabilities = softmax(scale scores) over the keys seen, 0 for the others; log_sum_exp is what the
/// softmaxes' denominators are the exponentials of. scores: f32.
void softmax_of_scores(const tensor& scores, const score_options& options, tensor& probabilities,
                       tensor& log_sum_exp);

/// delta[b, t, h] = the sum over a head's elements of dout out. dout, out: [B, T, heads D]; delta: f32
/// [B, T, heads].
void attention_delta(const tensor& dout, const tensor& out, tensor& delta);

/// With p = e^(scale score - log_sum_exp) for the keys seen, else 0: probabilities = p, and dscores = scale p
/// (dprobabilities - delta). `delta` has `delta_stride` elements between positions and 1 between heads.
void score_gradients(const tensor& scores, const tensor& dprobabilities, const tensor& log_sum_exp,
                     const tensor& delta, std::int64_t delta_stride, const score_options& options,
                     tensor& probabilities, tensor& dscores);

}  // namespace troupe::cuda
