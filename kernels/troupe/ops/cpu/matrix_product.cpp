#include "troupe/ops/cpu/matrix_product.hpp"

#include <array>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"
#include "troupe/ops/cpu/loops/relu.hpp"
#include "troupe/ops/cpu/product/packed_product.hpp"
#include "troupe/ops/cpu/reductions/reductions.hpp"

namespace troupe::cpu {
namespace {

/// The result for an inner extent of 0: bias and accumulation only.
void empty_product(const matrix_product_shape& product, const tensor& bias, tensor& c) {
  if (!product.accumulate) c.fill_zero();
  if (bias.defined()) {
    auto sums = float_copy(c), added = float_copy(bias);
    auto values = sums.values<float>(), terms = added.values<float>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += terms[i % terms.size()];
    store_floats(sums, c);
  }
  if (product.relu) relu_in_place(c);
}

const std::byte* pair_of(const tensor& matrices, std::int64_t pair, std::int64_t num_elements) {
  return matrices.bytes().data() +
         static_cast<std::size_t>(pair * num_elements) * size_bytes(matrices.dtype());
}

/// One pair's product; bias and c are f32.
packed_product product_of_pair(const matrix_product_shape& product, std::int64_t pair, const tensor& a,
                               const tensor& b, const tensor& bias, tensor& c) {
  auto [rows, columns, inner] = std::array{product.rows, product.columns, product.inner};
  return {.a = {.elements = pair_of(a, pair, rows * inner),
                .dtype = a.dtype(),
                .lane_step = product.left_is_transposed ? 1 : inner,
                .inner_step = product.left_is_transposed ? rows : 1},
          .b = {.elements = pair_of(b, product.right_is_shared ? 0 : pair, inner * columns),
                .dtype = b.dtype(),
                .lane_step = product.right_is_transposed ? inner : 1,
                .inner_step = product.right_is_transposed ? 1 : columns},
          .rows = rows,
          .columns = columns,
          .inner = inner,
          .c = {.c = c.values<float>().data() + pair * rows * columns,
                .stride = columns,
                .column_bias = bias.defined() ? bias.values<float>().data() : nullptr,
                .accumulate = product.accumulate,
                .relu = product.relu}};
}

void multiply(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
              tensor& c) {
  auto elements = product.batch * product.rows * product.columns * product.inner / multiply_adds_per_element;
  auto threads = threads_for(elements);
  auto parts = product.batch >= threads ? 1 : threads;
  parallel_for(product.batch * parts, elements, [&](std::int64_t index) {
    auto whole = product_of_pair(product, index / parts, a, b, bias, c);
    auto part = part_of(whole, index % parts, parts);
    if (part.rows > 0 && part.columns > 0) multiply_part(whole, part);
  });
}

}  // namespace

void matrix_product(const matrix_product_shape& pairs, const tensor& a, const tensor& b, const tensor& bias,
                    tensor& c) {
  auto product = pairs.joined();
  if (c.num_elements() == 0) return;
  if (product.inner == 0) return empty_product(product, bias, c);
  auto added = bias.defined() ? float_copy(bias) : bias;
  if (c.dtype() == dtype::f32) return multiply(product, a, b, added, c);
  auto sums = product.accumulate ? float_copy(c) : tensor::empty(c.shape());
  multiply(product, a, b, added, sums);
  store_floats(sums, c);
}

product_kernels products() { return {.matrix_product = matrix_product, .row_sum = row_sum}; }

}  // namespace troupe::cpu
