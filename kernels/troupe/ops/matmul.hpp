#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

struct matmul_options {
  /// The last two axes of `a` are stored as [K, M]; not copied.
  bool transpose_a = false;
  /// The last two axes of `b` are stored as [N, K]; not copied.
  bool transpose_b = false;
};

/// c = a b for each pair of matrices. All are of one dtype: f32, bf16 or f16.
/// - a: [..., M, K]
/// - b: [..., K, N] with the leading axes of a, or [K, N] for all of them
/// - c: [..., M, N]
///
/// Sums are in f32 and rounded once. Equal shapes and numbers of threads give equal bits. Mismatches throw
/// std::invalid_argument.
tensor matmul(const tensor& a, const tensor& b, const matmul_options& options = {});

/// c (+)= a b. c: of the dtype of a and b, or f32, as a gradient is.
void matmul_into(const tensor& a, const tensor& b, tensor c, gradient_mode mode,
                 const matmul_options& options = {});

}  // namespace troupe
