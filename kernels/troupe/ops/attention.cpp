#include "troupe/ops/attention.hpp"

#include <cmath>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

/// The extents of `out`; throws unless qkv's width is divisible into heads.
shape out_extents(std::string_view operation, const tensor& qkv, const attention_options& options) {
  require_floating(operation, "qkv", qkv);
  const auto& extents = qkv.shape();
  auto heads = std::to_string(options.num_heads);
  if (options.num_heads < 1) throw_invalid(operation, "num_heads >= 1", heads);
  if (!(options.scale >= 0)) throw_invalid(operation, "scale >= 0", std::to_string(options.scale));
  auto packed = extents.rank() == 3 && extents[2] % (std::int64_t{3} * options.num_heads) == 0;
  auto cut = extents.rank() == 5 && extents[2] == 3 && extents[3] == options.num_heads;
  if (!packed && !cut)
    throw_invalid(operation, "qkv [B, T, 3 * H * D] or [B, T, 3, H, D] with H = " + heads, describe(qkv));
  auto width = packed ? extents[2] / 3 : extents[3] * extents[4];
  if (width == 0) throw_invalid(operation, "heads of at least one element", describe(qkv));
  return {extents[0], extents[1], width};
}

shape sums_extents(const shape& out, const attention_options& options) {
  return {out[0], options.num_heads, out[1]};
}

attention_options with_scale(attention_options options, const shape& out) {
  if (options.scale == 0)
    options.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(out[2]) / options.num_heads));
  return options;
}

}  // namespace

attention_result attention_forward(const tensor& qkv, const attention_options& options) {
  auto extents = out_extents("attention", qkv, options);
  attention_result result{
      tensor::empty(extents, qkv.dtype(), qkv.device()),
      tensor::empty(sums_extents(extents, options), dtype::f32, qkv.device()),
  };
  kernels_on(qkv.device())
      .attention.forward(qkv, with_scale(options, extents), result.out, result.log_sum_exp);
  return result;
}

tensor attention_backward(const tensor& dout, const tensor& qkv, const tensor& out, const tensor& log_sum_exp,
                          const attention_options& options) {
  auto extents = out_extents("attention_backward", qkv, options);
  require_argument("attention_backward", "out", out, qkv.dtype(), extents, qkv.device());
  require_argument("attention_backward", "dout", dout, qkv.dtype(), extents, qkv.device());
  require_argument("attention_backward", "log_sum_exp", log_sum_exp, dtype::f32,
                   sums_extents(extents, options), qkv.device());
  auto dqkv = empty_like(qkv);
  kernels_on(qkv.device())
      .attention.backward(dout, qkv, out, log_sum_exp, with_scale(options, extents), dqkv);
  return dqkv;
}

}  // namespace troupe
