#include "troupe/ops/cpu/matrix_product.hpp"

#include "troupe/ops/cpu/float_copy.hpp"
#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/relu.hpp"
#include "troupe/ops/cpu/row_sum.hpp"

namespace troupe::cpu {
namespace {

/// The result for an inner extent of 0: bias and accumulation only.
void empty_product(const matrix_product_shape& product, const tensor& bias, tensor& c) {
  if (!product.accumulate) c.fill_zero();
  if (!bias.defined()) return;
  auto sums = float_copy(c), added = float_copy(bias);
  auto values = sums.values<float>(), terms = added.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += terms[i % terms.size()];
  store_floats(sums, c);
}

void multiply_as_f32(const matrix_product_shape& product, const tensor& a, const tensor& b,
                     const tensor& bias, tensor& c) {
  auto sums = c.dtype() == dtype::f32 ? c : product.accumulate ? float_copy(c) : tensor::empty(c.shape());
  multiply(product, float_copy(a), float_copy(b), bias.defined() ? float_copy(bias) : bias, sums);
  if (c.dtype() != dtype::f32) store_floats(sums, c);
}

}  // namespace

void matrix_product(const matrix_product_shape& pairs, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  auto product = pairs.joined();
  product.relu = false;
  if (c.num_elements() == 0) return;
  if (product.inner == 0)
    empty_product(product, bias, c);
  else if (a.dtype() == dtype::f32 || (a.dtype() == dtype::bf16 && multiplies_bf16()))
    multiply(product, a, b, bias, c);
  else
    multiply_as_f32(product, a, b, bias, c);
  if (pairs.relu) relu_in_place(c);
}

product_kernels products() { return {.matrix_product = matrix_product, .row_sum = row_sum}; }

}  // namespace troupe::cpu
