#pragma once

#include <array>
#include <cstdint>

#include "troupe/ops/kernels/kernel.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {

/// What troupe/ops/elementwise.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct elementwise_kernels {
  /// a and b broadcast to c's shape. All are floating, or all are i64 or i32; comparisons write bool.
  using binary = kernel<void(const tensor& a, const tensor& b, tensor& c)>;
  using unary = kernel<void(const tensor& x, tensor& y)>;

  binary add{"add"};
  binary subtract{"subtract"};
  binary multiply{"multiply"};
  binary divide{"divide"};
  binary minimum{"minimum"};
  binary maximum{"maximum"};
  binary equal{"equal"};
  binary less{"less"};
  kernel<void(const tensor& condition, const tensor& a, const tensor& b, tensor& c)> where{"where"};
  unary exp{"exp"};
  unary log{"log"};
  unary sqrt{"sqrt"};
  unary negate{"negate"};
  unary abs{"abs"};
  unary reciprocal{"reciprocal"};
  kernel<void(float alpha, const tensor& x, tensor& y)> axpy{"axpy"};
  /// y may be x.
  using with_number = kernel<void(const tensor& x, float number, tensor& y)>;
  with_number add_number{"add"};
  with_number multiply_by_number{"multiply"};
  kernel<void(const tensor& x, float low, float high, tensor& y)> clamp{"clamp"};
};

/// What troupe/ops/activation.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct activation_kernels {
  using forward = kernel<void(const tensor& x, tensor& y)>;
  /// `from` is the second argument of the public function of that name (x or y).
  using backward = kernel<void(const tensor& dy, const tensor& from, tensor& dx)>;

  forward relu_forward{"relu"};
  backward relu_backward{"relu_backward"};
  forward gelu_forward{"gelu"};
  backward gelu_backward{"gelu_backward"};
  forward gelu_tanh_forward{"gelu"};
  backward gelu_tanh_backward{"gelu_backward"};
  forward silu_forward{"silu"};
  backward silu_backward{"silu_backward"};
  forward tanh_forward{"tanh"};
  backward tanh_backward{"tanh_backward"};
  forward sigmoid_forward{"sigmoid"};
  backward sigmoid_backward{"sigmoid_backward"};
};

/// What troupe/ops/convert.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct convert_kernels {
  kernel<void(const tensor& x, tensor& y)> cast{"cast"};
  kernel<void(const tensor& x, float scale, tensor& y)> to_float{"to_float"};
};

/// Element i is multiplied by `factor` if word i of the philox_stream with this key and place is at least
/// `threshold`, else set to 0.
struct dropout_mask {
  philox_key key;
  std::array<std::uint32_t, 3> place;
  std::uint32_t threshold;
  float factor;
};

/// What troupe/ops/dropout.hpp needs from a device.
struct dropout_kernels {
  kernel<void(const tensor& x, const dropout_mask& mask, tensor& y)> apply{"dropout"};
};

}  // namespace troupe
