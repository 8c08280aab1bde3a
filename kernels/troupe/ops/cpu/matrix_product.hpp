#pragma once
#include <cstdint>

namespace troupe {

/// C = op(A) op(B), or C += with `accumulate`: op(A) is [rows, inner], op(B) [inner, columns], C [rows,
/// columns]. A transposed operand lies in memory as [inner, rows] or [columns, inner]. All are row-major and
/// dense.
struct matrix_product_shape {
  std::int64_t rows = 0, columns = 0, inner = 0;
  bool left_is_transposed = false;
  bool right_is_transposed = false;
  bool accumulate = false;
};

void matrix_product(const matrix_product_shape& of, const float* a, const float* b, float* c);

}  // namespace troupe
