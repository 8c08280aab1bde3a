#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe::cuda {

/// How one operand lies in memory where it is not dense: how many elements lie between the beginnings of its
/// rows, and of the pairs' matrices. 0: as many as there are in one.
struct matrix_strides {
  std::int64_t row = 0, pair = 0;
  auto operator<=>(const matrix_strides&) const = default;
};

/// C = op(A) op(B) for each of `batch` pairs, or C += with `accumulate`: op(A) is [rows, inner], op(B)
/// [inner, columns], C [rows, columns]. A transposed operand lies in memory as [inner, rows] or [columns,
/// inner]. All are row-major, and but for the strides given dense.
struct matrix_product_shape {
  std::int64_t rows = 0, columns = 0, inner = 0;
  std::int64_t batch = 1;
  bool left_is_transposed = false;
  bool right_is_transposed = false;
  bool right_is_shared = false;  ///< one B for all
  bool accumulate = false;
  bool relu = false;  ///< C = max(op(A) op(B) + bias, 0)
  matrix_strides left = {}, right = {}, result = {};
  auto operator<=>(const matrix_product_shape&) const = default;
};

/// The product of tensors of f32, bf16 or f16 on one GPU, with products and sums in f32 (never TF32); `a`,
/// `b` and `bias` are of one dtype, `c` of the same or f32. `bias` [columns] is added to each row, unless it
/// is undefined. Equal arguments give equal bits on equal GPUs with one version of cuBLASLt.
void matrix_product(matrix_product_shape of, const tensor& a, const tensor& b, const tensor& bias, tensor& c);

}  // namespace troupe::cuda
