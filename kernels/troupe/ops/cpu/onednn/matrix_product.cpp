#include "troupe/ops/cpu/matrix_product.hpp"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace troupe {

void matrix_product(const matrix_product_shape& of, const float* a, const float* b, float* c) {
  if (of.rows == 0 || of.columns == 0) return;
  if (of.inner == 0) {
    if (!of.accumulate) std::fill_n(c, of.rows * of.columns, 0.0F);
    return;
  }
  auto status =
      dnnl_sgemm(of.left_is_transposed ? 'T' : 'N', of.right_is_transposed ? 'T' : 'N', of.rows, of.columns,
                 of.inner, 1.0F, a, of.left_is_transposed ? of.rows : of.inner, b,
                 of.right_is_transposed ? of.inner : of.columns, of.accumulate ? 1.0F : 0.0F, c, of.columns);
  if (status != dnnl_success)
    throw std::runtime_error("dnnl_sgemm failed with status " + std::to_string(static_cast<int>(status)));
}

}  // namespace troupe
