#include "troupe/ops/matmul.hpp"

#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

void require_matrices(std::string_view argument, const tensor& value) {
  require_floating("matmul", argument, value);
  if (value.shape().rank() < 2)
    throw_invalid("matmul", std::string(argument) + " with at least two axes", describe(value));
}

/// The shape of c; checks b against a.
shape product_extents(const tensor& a, const tensor& b, const matmul_options& options) {
  require_matrices("a", a);
  require_matrices("b", b);
  auto rows = a.shape()[options.transpose_a ? -1 : -2], inner = a.shape()[options.transpose_a ? -2 : -1];
  auto columns = b.shape()[options.transpose_b ? -2 : -1];
  auto extents = b.shape().rank() == 2 ? b.shape().extents() : a.shape().extents();
  extents[extents.size() - 2] = options.transpose_b ? columns : inner;
  extents[extents.size() - 1] = options.transpose_b ? inner : columns;
  require_argument("matmul", "b", b, a.dtype(), shape(std::move(extents)), a.device());
  extents = a.shape().extents();
  extents[extents.size() - 2] = rows;
  extents[extents.size() - 1] = columns;
  return shape(std::move(extents));
}

void multiply_matrices(const tensor& a, const tensor& b, tensor& c, gradient_mode mode,
                       const matmul_options& options) {
  std::int64_t batch = 1;
  for (int axis = 0; axis < c.shape().rank() - 2; ++axis) batch *= c.shape()[axis];
  auto shares = b.shape().rank() == 2 && batch != 1;  // a batch of one is computed as plain matrices are
  kernels_on(a.device())
      .products.matrix_product({.rows = c.shape()[-2],
                                .columns = c.shape()[-1],
                                .inner = b.shape()[options.transpose_b ? -1 : -2],
                                .batch = batch,
                                .left_is_transposed = options.transpose_a,
                                .right_is_transposed = options.transpose_b,
                                .right_is_shared = shares,
                                .accumulate = mode == gradient_mode::accumulate},
                               a, b, {}, c);
}

}  // namespace

tensor matmul(const tensor& a, const tensor& b, const matmul_options& options) {
  auto c = tensor::empty(product_extents(a, b, options), a.dtype(), a.device());
  multiply_matrices(a, b, c, gradient_mode::assign, options);
  return c;
}

void matmul_into(const tensor& a, const tensor& b, tensor c, gradient_mode mode,
                 const matmul_options& options) {
  auto extents = product_extents(a, b, options);
  auto type = c.defined() && c.dtype() == a.dtype() ? a.dtype() : dtype::f32;
  require_argument("matmul", "c", c, type, extents, a.device());
  multiply_matrices(a, b, c, mode, options);
}

}  // namespace troupe
