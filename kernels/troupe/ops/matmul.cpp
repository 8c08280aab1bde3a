#include "troupe/ops/matmul.hpp"

#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/ops/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

void require_matrices(std::string_view argument, const tensor& value) {
  require_floating("matmul", argument, value);
  if (value.extents().rank() < 2)
    throw_invalid("matmul", std::string(argument) + " with at least two axes", describe(value));
}

/// What c is. Checks b against a.
shape product_extents(const tensor& a, const tensor& b, const matmul_options& options) {
  require_matrices("a", a);
  require_matrices("b", b);
  auto rows = a.extents()[options.transpose_a ? -1 : -2], inner = a.extents()[options.transpose_a ? -2 : -1];
  auto columns = b.extents()[options.transpose_b ? -2 : -1];
  auto extents = b.extents().rank() == 2 ? b.extents().extents() : a.extents().extents();
  extents[extents.size() - 2] = options.transpose_b ? columns : inner;
  extents[extents.size() - 1] = options.transpose_b ? inner : columns;
  require_argument("matmul", "b", b, a.type(), shape(std::move(extents)), a.where());
  extents = a.extents().extents();
  extents[extents.size() - 2] = rows;
  extents[extents.size() - 1] = columns;
  return shape(std::move(extents));
}

void multiply_matrices(const tensor& a, const tensor& b, tensor& c, gradient_mode mode,
                       const matmul_options& options) {
  std::int64_t batch = 1;
  for (int axis = 0; axis < c.extents().rank() - 2; ++axis) batch *= c.extents()[axis];
  auto shares = b.extents().rank() == 2 && batch != 1;  // a batch of one is computed as plain matrices are
  kernels_on(a.where()).products.matrix_product({.rows = c.extents()[-2],
                                                 .columns = c.extents()[-1],
                                                 .inner = b.extents()[options.transpose_b ? -1 : -2],
                                                 .batch = batch,
                                                 .left_is_transposed = options.transpose_a,
                                                 .right_is_transposed = options.transpose_b,
                                                 .right_is_shared = shares,
                                                 .accumulate = mode == gradient_mode::accumulate},
                                                a, b, {}, c);
}

}  // namespace

tensor matmul(const tensor& a, const tensor& b, const matmul_options& options) {
  auto c = tensor::empty(product_extents(a, b, options), a.type(), a.where());
  multiply_matrices(a, b, c, gradient_mode::assign, options);
  return c;
}

void matmul_into(const tensor& a, const tensor& b, tensor c, gradient_mode mode,
                 const matmul_options& options) {
  auto extents = product_extents(a, b, options);
  auto type = c.defined() && c.type() == a.type() ? a.type() : dtype::f32;
  require_argument("matmul", "c", c, type, extents, a.where());
  multiply_matrices(a, b, c, mode, options);
}

}  // namespace troupe
