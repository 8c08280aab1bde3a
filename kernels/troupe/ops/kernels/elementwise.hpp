#pragma once
#include "troupe/ops/kernels/kernel.hpp"

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

}  // namespace troupe
