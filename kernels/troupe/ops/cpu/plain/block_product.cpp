#include "troupe/ops/cpu/block_product.hpp"

#include <algorithm>

namespace troupe::cpu {

void block_product(const block_product_shape& of, const float* a, const float* b, float* c) {
  auto a_row = of.left_is_transposed ? 1 : of.left_stride,
       a_inner = of.left_is_transposed ? of.left_stride : 1;
  for (std::int64_t i = 0; i < of.rows; ++i) {
    auto* row = c + i * of.stride;
    if (!of.accumulate) std::fill_n(row, of.columns, 0.0F);
    for (std::int64_t k = 0; k < of.inner; ++k)
      for (std::int64_t j = 0; j < of.columns; ++j)
        row[j] += a[i * a_row + k * a_inner] * b[k * of.right_stride + j];
  }
}

}  // namespace troupe::cpu
