#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "troupe/autograd/variable.hpp"
#include "troupe/ops/activation.hpp"
#include "troupe/ops/attention.hpp"
#include "troupe/ops/batch_norm.hpp"
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/ops/pooling.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {

// Operations on variables, recorded if a gradient is required. Shapes, dtypes, formulas and errors are those
// of troupe/ops. Parameters must outlive the backward pass, which accumulates their gradients in them.

// ---- products; they compute in the dtype of troupe/autograd/autocast.hpp

/// x weight^T + bias; `bias` may be null.
variable linear(const variable& x, parameter& weight, parameter* bias);
/// relu(linear(x, weight, bias)), fused, with the same bits.
variable linear_relu(const variable& x, parameter& weight, parameter* bias);
/// a: [..., M, K], b: [..., K, N] with the leading axes of a, or [K, N] for all: [..., M, N].
variable matmul(const variable& a, const variable& b, const matmul_options& options = {});
/// Self-attention; qkv holds queries, keys and values side by side (troupe/ops/attention.hpp).
variable attention(const variable& qkv, const attention_options& options);
/// Cross-correlation; `bias` may be null.
variable conv2d(const variable& x, parameter& weight, parameter* bias, const conv2d_options& options = {});

/// Rows of `weight` [V, C] by indices [...], u8 too: [..., C].
variable embedding(parameter& weight, const tensor& indices);

/// A parameter as an operand, for example a learned scale: multiply(x, as_variable(scale)). Its gradient
/// accumulates in the parameter.
variable as_variable(parameter& param);

// ---- elementwise

variable relu(const variable& x);
variable gelu(const variable& x, gelu_kind kind = gelu_kind::exact);
variable silu(const variable& x);
variable tanh(const variable& x);
variable sigmoid(const variable& x);
/// Equal streams give equal masks.
variable dropout(const variable& x, double p, const philox_stream& stream);

variable exp(const variable& x);
variable log(const variable& x);
variable sqrt(const variable& x);
variable negate(const variable& x);
/// The gradient at 0 is 0.
variable abs(const variable& x);
variable reciprocal(const variable& x);
variable add(const variable& x, float number);
variable multiply(const variable& x, float number);
/// The gradient passes where low <= x <= high.
variable clamp(const variable& x, float low, float high);

// Operands broadcast by NumPy's rule, and floating dtypes that differ become f32.
variable add(const variable& a, const variable& b);
variable subtract(const variable& a, const variable& b);
variable multiply(const variable& a, const variable& b);
variable divide(const variable& a, const variable& b);

inline variable operator+(const variable& a, const variable& b) { return add(a, b); }
inline variable operator-(const variable& a, const variable& b) { return subtract(a, b); }
inline variable operator*(const variable& a, const variable& b) { return multiply(a, b); }
inline variable operator/(const variable& a, const variable& b) { return divide(a, b); }
inline variable operator+(const variable& x, float number) { return add(x, number); }
inline variable operator*(const variable& x, float number) { return multiply(x, number); }
inline variable operator-(const variable& x) { return negate(x); }

// ---- reductions over the axes in the options, all if there are none

variable sum(const variable& x, const reduction_options& options = {});
variable mean(const variable& x, const reduction_options& options = {});
/// Equal maxima share the gradient evenly.
variable max(const variable& x, const reduction_options& options = {});
variable min(const variable& x, const reduction_options& options = {});

// ---- normalisation; parameters may be null

variable layer_norm(const variable& x, parameter* weight, parameter* bias, double eps = 1e-5);
variable rms_norm(const variable& x, parameter* weight, double eps = 1e-5);
/// Training mode: uses the statistics of this batch and updates the running statistics.
variable batch_norm(const variable& x, parameter& weight, parameter& bias, const tensor& running_mean,
                    const tensor& running_variance, const batch_norm_options& options = {});
/// Evaluation mode: uses the given statistics as constants.
variable batch_norm_inference(const variable& x, parameter& weight, parameter& bias, const tensor& mean,
                              const tensor& variance, const batch_norm_options& options = {});
/// Over the last axis.
variable softmax(const variable& x);
variable log_softmax(const variable& x);

// ---- pooling

variable max_pool2d(const variable& x, const pool2d_options& options = {});
variable avg_pool2d(const variable& x, const pool2d_options& options = {});
variable global_avg_pool(const variable& x);

// ---- shapes and dtypes

/// The same elements under another shape.
variable reshape(const variable& x, shape extents);
/// [B, ...] to [B, product of the rest]: the same elements.
variable flatten(const variable& x);
/// x repeated along axes of extent 1 and missing ones, by NumPy's rule.
variable broadcast_to(const variable& x, const shape& extents);
/// Concatenates the parts along `axis`.
variable concat(const std::vector<variable>& parts, int axis);
/// Splits x along `axis` into parts of the extents `counts`, whose sum must be x's extent.
std::vector<variable> split(const variable& x, int axis, const std::vector<std::int64_t>& counts);
/// Elements [first, first + count) along `axis`.
variable slice(const variable& x, int axis, std::int64_t first, std::int64_t count);
/// Axis i of the result is axis axes[i] of x.
variable transpose(const variable& x, const std::vector<int>& axes);
/// [..., m, n] to [..., n, m]
variable transpose(const variable& x);
/// Rows of `values` [N, ...] at `indices`; shape: the axes of indices, then those of a row.
variable gather_rows(const variable& values, const tensor& indices);
/// sum [N, ...] f32, with rows[i] added to its row indices[i]. rows: the axes of indices, then those of a
/// row.
variable scatter_add_rows(const variable& sum, const tensor& indices, const variable& rows);
/// Throws std::invalid_argument for a non-floating dtype if a gradient is required.
variable cast(const variable& x, dtype type);
/// x converted to compute_dtype().
variable in_compute_dtype(const variable& x);
/// x * scale as f32, for u8 x. Throws std::invalid_argument if x requires a gradient: u8 has none.
variable to_float(const variable& x, float scale);

// ---- losses

struct loss_result {
  variable loss;  ///< scalar f32: gradient_scale * loss_sum
  double loss_sum = 0;
  std::int64_t num_correct = 0;
  std::int64_t num_counted = 0;
  /// f32 []: loss_sum on the device of the logits; the only field that a captured_step updates. Undefined for
  /// mse_loss.
  tensor device_loss_sum = {};
  /// See cross_entropy_result.
  std::shared_ptr<const loss_totals> deferred = nullptr;
};

/// Softmax cross entropy of logits [..., C] and labels [...]; backward gives gradient_scale times the
/// gradient of the loss summed over samples.
loss_result cross_entropy(const variable& logits, const tensor& labels, double gradient_scale,
                          const cross_entropy_options& options = {});

/// Squared error of a prediction and a target of the same shape; different floating dtypes are converted to
/// f32. The result's num_counted is the number of elements: gradient_scale = 1 / num_counted gives the
/// gradient of the mean, 1 that of the sum.
loss_result mse_loss(const variable& prediction, const tensor& target, double gradient_scale);

}  // namespace troupe
