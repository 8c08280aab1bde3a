#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// What troupe/ops/elementwise.hpp needs from a device. Arguments have been checked; outputs are allocated.
struct elementwise_kernels {
  /// a and b broadcast to c's shape. All are floating, or all are i64 or i32; comparisons write bool.
  using binary = void (*)(const tensor& a, const tensor& b, tensor& c);
  using unary = void (*)(const tensor& x, tensor& y);

  binary add = nullptr;
  binary subtract = nullptr;
  binary multiply = nullptr;
  binary divide = nullptr;
  binary minimum = nullptr;
  binary maximum = nullptr;
  binary equal = nullptr;
  binary less = nullptr;
  void (*where)(const tensor& condition, const tensor& a, const tensor& b, tensor& c) = nullptr;
  unary exp = nullptr;
  unary log = nullptr;
  unary sqrt = nullptr;
  unary negate = nullptr;
  unary abs = nullptr;
  unary reciprocal = nullptr;
  void (*axpy)(float alpha, const tensor& x, tensor& y) = nullptr;
  void (*scale)(tensor& x, float factor) = nullptr;
};

}  // namespace troupe
