#include "troupe/ops/cpu/matrix_product.hpp"

#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/float_copy.hpp"
#include "troupe/ops/cpu/relu.hpp"
#include "troupe/ops/cpu/row_sum.hpp"

namespace troupe::cpu {
namespace {

/// What the bias and accumulation make of a product that is 0.
void empty_product(const matrix_product_shape& of, const tensor& bias, tensor& c) {
  if (!of.accumulate) c.fill_zero();
  if (!bias.defined()) return;
  auto sums = float_copy(c), added = float_copy(bias);
  auto values = sums.values<float>(), terms = added.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += terms[i % terms.size()];
  store_floats(sums, c);
}

void multiply_as_f32(const matrix_product_shape& of, const tensor& a, const tensor& b, const tensor& bias,
                     tensor& c) {
  auto sums = c.dtype() == dtype::f32 ? c : of.accumulate ? float_copy(c) : tensor::empty(c.shape());
  multiply(of, float_copy(a), float_copy(b), bias.defined() ? float_copy(bias) : bias, sums);
  if (c.dtype() != dtype::f32) store_floats(sums, c);
}

}  // namespace

void matrix_product(const matrix_product_shape& pairs, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  auto of = pairs.joined();
  of.relu = false;
  if (c.num_elements() == 0) return;
  if (of.inner == 0)
    empty_product(of, bias, c);
  else if (a.dtype() == dtype::f32 || (a.dtype() == dtype::bf16 && multiplies_bf16()))
    multiply(of, a, b, bias, c);
  else
    multiply_as_f32(of, a, b, bias, c);
  if (pairs.relu) relu_in_place(c);
}

product_kernels products() { return {.matrix_product = matrix_product, .row_sum = row_sum}; }

}  // namespace troupe::cpu
