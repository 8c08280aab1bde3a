#pragma once
#include <cstdint>

#include "troupe/autograd/variable.hpp"
#include "troupe/ops/activation.hpp"
#include "troupe/ops/attention.hpp"
#include "troupe/ops/batch_norm.hpp"
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/pooling.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {

// Operations on variables, recorded where a gradient is wanted. Shapes, dtypes, formulas and errors are those
// of troupe/ops. Parameters outlive the backward pass; their gradients accumulate there.

// ---- products; they compute in the dtype of troupe/autograd/autocast.hpp

/// x weight^T + bias; `bias` may be null.
variable linear(const variable& x, parameter& weight, parameter* bias);
/// relu(linear(x, weight, bias)) with the same bits, without another pass over memory.
variable linear_relu(const variable& x, parameter& weight, parameter* bias);
/// Of queries, keys and values side by side.
variable attention(const variable& qkv, const attention_options& options);
/// Cross-correlation; `bias` may be null.
variable conv2d(const variable& x, parameter& weight, parameter* bias, const conv2d_options& options = {});

/// Rows of `weight` [V, C] by indices [...], u8 too: [..., C].
variable embedding(parameter& weight, const tensor& indices);

// ---- elementwise

variable relu(const variable& x);
variable gelu(const variable& x, gelu_kind kind = gelu_kind::exact);
variable silu(const variable& x);
variable tanh(const variable& x);
variable sigmoid(const variable& x);
/// The same mask for the same stream.
variable dropout(const variable& x, double p, const philox_stream& stream);

// Operands broadcast by NumPy's rule, and floating dtypes that differ become f32.
variable add(const variable& a, const variable& b);
variable subtract(const variable& a, const variable& b);
variable multiply(const variable& a, const variable& b);
variable divide(const variable& a, const variable& b);

// ---- normalisation; parameters may be null

variable layer_norm(const variable& x, parameter* weight, parameter* bias, double eps = 1e-5);
variable rms_norm(const variable& x, parameter* weight, double eps = 1e-5);
/// With the statistics of this batch, by which the running ones move.
variable batch_norm(const variable& x, parameter& weight, parameter& bias, const tensor& running_mean,
                    const tensor& running_variance, const batch_norm_options& options = {});
/// Over the last axis.
variable softmax(const variable& x);
variable log_softmax(const variable& x);

// ---- windows

variable max_pool2d(const variable& x, const pool2d_options& options = {});
variable avg_pool2d(const variable& x, const pool2d_options& options = {});
variable global_avg_pool(const variable& x);

// ---- shapes and dtypes

/// The same elements under another shape.
variable reshape(const variable& x, shape extents);
/// [B, ...] to [B, product of the rest]: the same elements.
variable flatten(const variable& x);
/// Throws std::invalid_argument for a dtype that is not floating where a gradient is wanted.
variable cast(const variable& x, dtype type);
/// x in the dtype in which products compute now.
variable in_compute_dtype(const variable& x);
/// x * scale as f32, for u8 x. Throws std::invalid_argument if a gradient of x is wanted: there is none.
variable to_float(const variable& x, float scale);

// ---- losses

struct loss_result {
  variable loss;  ///< scalar f32: gradient_scale * loss_sum
  double loss_sum = 0;
  std::int64_t num_correct = 0;
  std::int64_t num_counted = 0;
};

/// Softmax cross entropy of logits [..., C] and labels [...]; its backward gives gradient_scale times the
/// gradient of the samples' summed loss.
loss_result cross_entropy(const variable& logits, const tensor& labels, double gradient_scale,
                          const cross_entropy_options& options = {});

}  // namespace troupe
