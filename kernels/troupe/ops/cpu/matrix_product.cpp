#include "troupe/ops/cpu/matrix_product.hpp"

#include "troupe/ops/cpu/float_copy.hpp"

namespace troupe::cpu {
namespace {

/// The rows of all pairs are rows of one product where they share B.
void join_pairs(matrix_product_shape& of) {
  if (!of.right_is_shared || of.left_is_transposed) return;
  of.rows *= of.batch;
  of.batch = 1;
}

}  // namespace

void matrix_product(matrix_product_shape of, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  join_pairs(of);
  if (c.num_elements() == 0) return;
  if (of.inner == 0) {
    if (!of.accumulate) c.fill_zero();
    return;
  }
  if (a.type() == dtype::f32 || (a.type() == dtype::bf16 && multiplies_bf16()))
    return multiply(of, a, b, bias, c);
  auto sums = c.type() == dtype::f32 ? c : of.accumulate ? float_copy(c) : tensor::empty(c.extents());
  multiply(of, float_copy(a), float_copy(b), bias.defined() ? float_copy(bias) : bias, sums);
  if (c.type() != dtype::f32) store_floats(sums, c);
}

}  // namespace troupe::cpu
