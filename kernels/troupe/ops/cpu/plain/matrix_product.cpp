#include "troupe/ops/cpu/matrix_product.hpp"

#include <algorithm>

namespace troupe::cpu {
namespace {

void start(const matrix_product_shape& product, const tensor& bias, float* row) {
  if (bias.defined())
    std::ranges::copy(bias.values<float>(), row);
  else if (!product.accumulate)
    std::fill_n(row, product.columns, 0.0F);
}

// One row of C at a time, so that the inner loop runs along a row of B and C whenever B is not transposed.
void multiply_pair(const matrix_product_shape& product, const float* a, const float* b, const tensor& bias,
                   float* c) {
  auto a_row = product.left_is_transposed ? 1 : product.inner,
       a_inner = product.left_is_transposed ? product.rows : 1;
  auto b_inner = product.right_is_transposed ? 1 : product.columns,
       b_column = product.right_is_transposed ? product.inner : 1;
  for (std::int64_t i = 0; i < product.rows; ++i) {
    auto* row = c + i * product.columns;
    start(product, bias, row);
    for (std::int64_t k = 0; k < product.inner; ++k)
      for (std::int64_t j = 0; j < product.columns; ++j)
        row[j] += a[i * a_row + k * a_inner] * b[k * b_inner + j * b_column];
  }
}

}  // namespace

bool multiplies_bf16() { return false; }

void multiply(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
              tensor& c) {
  for (std::int64_t pair = 0; pair < product.batch; ++pair)
    multiply_pair(
        product, a.values<float>().data() + pair * product.rows * product.inner,
        b.values<float>().data() + (product.right_is_shared ? 0 : pair * product.inner * product.columns),
        bias, c.values<float>().data() + pair * product.rows * product.columns);
}

}  // namespace troupe::cpu
