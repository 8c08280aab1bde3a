#pragma once
#include "troupe/ops/gradient_mode.hpp"
#include "troupe/ops/kernels/kernel.hpp"

namespace troupe {

/// C = op(A) op(B) for each of `batch` pairs, or C += with `accumulate`: op(A) is [rows, inner], op(B)
/// [inner, columns], C [rows, columns]. A transposed operand lies in memory as [inner, rows] or [columns,
/// inner]. All are row-major, and the pairs follow each other.
struct matrix_product_shape {
  std::int64_t rows = 0, columns = 0, inner = 0;
  std::int64_t batch = 1;
  bool left_is_transposed = false;
  bool right_is_transposed = false;
  bool right_is_shared = false;  ///< one B serves all products
  bool accumulate = false;
  bool relu = false;  ///< C = max(op(A) op(B) + bias, 0)
  auto operator<=>(const matrix_product_shape&) const = default;

  /// Merges the rows of all pairs into one product if they share B and are contiguous.
  matrix_product_shape joined() const {
    auto result = *this;
    if (!right_is_shared || left_is_transposed) return result;
    result.rows *= batch;
    result.batch = 1;
    return result;
  }
};

/// What troupe/ops/linear.hpp and troupe/ops/matmul.hpp need from a device. Arguments have been checked;
/// outputs are allocated.
struct product_kernels {
  /// The product of tensors of f32, bf16 or f16, with sums in f32; `a`, `b` and `bias` are of one dtype, `c`
  /// of the same or f32. `bias` [columns] is added to each row, unless it is undefined. Any extent may be 0.
  kernel<void(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
              tensor& c)>
      matrix_product{"matrix_product"};
  /// sum (+)= the rows of x: [..., C] of f32, bf16 or f16; sum: [C] of f32.
  kernel<void(const tensor& x, tensor& sum, gradient_mode mode)> row_sum{"row_sum"};
};

}  // namespace troupe
