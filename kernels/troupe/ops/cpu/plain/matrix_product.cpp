#include "troupe/ops/cpu/matrix_product.hpp"

#include <algorithm>

namespace troupe::cpu {
namespace {

void start(const matrix_product_shape& of, const tensor& bias, float* row) {
  if (bias.defined())
    std::ranges::copy(bias.values<float>(), row);
  else if (!of.accumulate)
    std::fill_n(row, of.columns, 0.0F);
}

// One row of C at a time, so that the inner loop runs along a row of B and C whenever B is not transposed.
void multiply_pair(const matrix_product_shape& of, const float* a, const float* b, const tensor& bias,
                   float* c) {
  auto a_row = of.left_is_transposed ? 1 : of.inner, a_inner = of.left_is_transposed ? of.rows : 1;
  auto b_inner = of.right_is_transposed ? 1 : of.columns, b_column = of.right_is_transposed ? of.inner : 1;
  for (std::int64_t i = 0; i < of.rows; ++i) {
    auto* row = c + i * of.columns;
    start(of, bias, row);
    for (std::int64_t k = 0; k < of.inner; ++k)
      for (std::int64_t j = 0; j < of.columns; ++j)
        row[j] += a[i * a_row + k * a_inner] * b[k * b_inner + j * b_column];
  }
}

}  // namespace

bool multiplies_bf16() { return false; }

void multiply(const matrix_product_shape& of, const tensor& a, const tensor& b, const tensor& bias,
              tensor& c) {
  for (std::int64_t pair = 0; pair < of.batch; ++pair)
    multiply_pair(of, a.values<float>().data() + pair * of.rows * of.inner,
                  b.values<float>().data() + (of.right_is_shared ? 0 : pair * of.inner * of.columns), bias,
                  c.values<float>().data() + pair * of.rows * of.columns);
}

}  // namespace troupe::cpu
