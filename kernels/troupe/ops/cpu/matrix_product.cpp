#include "troupe/ops/cpu/matrix_product.hpp"

#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/float_copy.hpp"
#include "troupe/ops/cpu/row_sum.hpp"

namespace troupe::cpu {
namespace {

/// What bias, relu and accumulation make of a product that is 0.
void empty_product(const matrix_product_shape& of, const tensor& bias, tensor& c) {
  auto has_epilogue = bias.defined() || of.relu;
  if (!of.accumulate && !has_epilogue) c.fill_zero();
  if (!has_epilogue) return;
  auto sums = of.accumulate ? float_copy(c) : tensor::zeros(c.extents());
  auto added = bias.defined() ? float_copy(bias) : tensor::zeros({of.columns});
  auto values = sums.values<float>();
  auto terms = added.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto value = values[i] + terms[i % terms.size()];
    values[i] = of.relu && !(value > 0) ? 0 : value;
  }
  store_floats(sums, c);
}

}  // namespace

void matrix_product(const matrix_product_shape& pairs, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  auto of = pairs.joined();
  if (c.num_elements() == 0) return;
  if (of.inner == 0) return empty_product(of, bias, c);
  if (a.type() == dtype::f32 || (a.type() == dtype::bf16 && multiplies_bf16()))
    return multiply(of, a, b, bias, c);
  auto sums = c.type() == dtype::f32 ? c : of.accumulate ? float_copy(c) : tensor::empty(c.extents());
  multiply(of, float_copy(a), float_copy(b), bias.defined() ? float_copy(bias) : bias, sums);
  if (c.type() != dtype::f32) store_floats(sums, c);
}

product_kernels products() { return {.matrix_product = matrix_product, .row_sum = row_sum}; }

}  // namespace troupe::cpu
