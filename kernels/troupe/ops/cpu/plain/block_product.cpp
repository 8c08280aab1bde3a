#include "troupe/ops/cpu/block_product.hpp"

#include <algorithm>

namespace troupe::cpu {

void block_product(const block_product_shape& product, const float* a, const float* b, float* c) {
  auto a_row = product.left_is_transposed ? 1 : product.left_stride,
       a_inner = product.left_is_transposed ? product.left_stride : 1;
  for (std::int64_t i = 0; i < product.rows; ++i) {
    auto* row = c + i * product.stride;
    if (!product.accumulate) std::fill_n(row, product.columns, 0.0F);
    for (std::int64_t k = 0; k < product.inner; ++k)
      for (std::int64_t j = 0; j < product.columns; ++j)
        row[j] += a[i * a_row + k * a_inner] * b[k * product.right_stride + j];
  }
}

}  // namespace troupe::cpu
