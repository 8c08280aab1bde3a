#include "troupe/ops/cpu/matrix_product.hpp"

#include <algorithm>

namespace troupe {

// One row of C at a time, so that the inner loop runs along a row of B and C whenever B is not transposed.
void matrix_product(const matrix_product_shape& of, const float* a, const float* b, float* c) {
  auto a_row = of.left_is_transposed ? 1 : of.inner, a_inner = of.left_is_transposed ? of.rows : 1;
  auto b_inner = of.right_is_transposed ? 1 : of.columns, b_column = of.right_is_transposed ? of.inner : 1;
  if (!of.accumulate) std::fill_n(c, of.rows * of.columns, 0.0F);
  for (std::int64_t i = 0; i < of.rows; ++i)
    for (std::int64_t k = 0; k < of.inner; ++k)
      for (std::int64_t j = 0; j < of.columns; ++j)
        c[i * of.columns + j] += a[i * a_row + k * a_inner] * b[k * b_inner + j * b_column];
}

}  // namespace troupe
