#pragma once
#include "troupe/tensor/tensor.hpp"

namespace troupe::cpu {

/// C = op(A) op(B) for each of `batch` pairs, or C += with `accumulate`: op(A) is [rows, inner], op(B)
/// [inner, columns], C [rows, columns]. A transposed operand lies in memory as [inner, rows] or [columns,
/// inner]. All are row-major and dense, and the pairs follow each other.
struct matrix_product_shape {
  std::int64_t rows = 0, columns = 0, inner = 0;
  std::int64_t batch = 1;
  bool left_is_transposed = false;
  bool right_is_transposed = false;
  bool right_is_shared = false;  ///< one B for all
  bool accumulate = false;
  bool relu = false;  ///< C = max(op(A) op(B) + bias, 0)
  auto operator<=>(const matrix_product_shape&) const = default;
};

/// The product of tensors of f32, bf16 or f16, with sums in f32; `a`, `b` and `bias` are of one dtype, `c` of
/// the same or f32. `bias` [columns] is added to each row, unless it is undefined. Equal shapes and numbers
/// of threads give equal bits.
void matrix_product(matrix_product_shape of, const tensor& a, const tensor& b, const tensor& bias, tensor& c);

// The build picks cpu/onednn/ or cpu/plain/ for these.

/// Whether `multiply` takes bf16 here.
bool multiplies_bf16();

/// The same for operands of f32 or, if it does, bf16; no extent is 0.
void multiply(const matrix_product_shape& of, const tensor& a, const tensor& b, const tensor& bias,
              tensor& c);

}  // namespace troupe::cpu
