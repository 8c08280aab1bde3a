#include "troupe/ops/linear.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

void require_matrix(std::string_view operation, const tensor& weight) {
  require_floating(operation, "weight", weight);
  require_rank(operation, "weight", weight, weight.dtype(), 2);
}

/// At least one axis.
void require_rows(std::string_view operation, std::string_view argument, const tensor& value) {
  require_floating(operation, argument, value);
  if (value.shape().rank() < 1)
    throw_invalid(operation, std::string(argument) + " with at least one axis", describe(value));
}

std::int64_t rows_of(const tensor& matrix) {
  auto columns = matrix.shape()[-1];
  return columns == 0 ? 0 : matrix.num_elements() / columns;
}

const product_kernels& products_on(device target) { return kernels_on(target).products; }

}  // namespace

tensor linear_forward(const tensor& x, const tensor& weight, const tensor& bias,
                      linear_activation activation) {
  require_rows("linear", "x", x);
  require_matrix("linear", weight);
  auto out = weight.shape()[0], in = weight.shape()[1];
  if (in == 0) throw_invalid("linear", "weight with at least one column", describe(weight));
  require_argument("linear", "x", x, weight.dtype(), with_last_axis(x.shape(), in), weight.device());
  if (bias.defined()) require_argument("linear", "bias", bias, weight.dtype(), {out}, weight.device());
  auto y = tensor::empty(with_last_axis(x.shape(), out), x.dtype(), x.device());
  products_on(x.device())
      .matrix_product({.rows = rows_of(x),
                       .columns = out,
                       .inner = in,
                       .right_is_transposed = true,
                       .relu = activation == linear_activation::relu},
                      x, weight, bias, y);
  return y;
}

tensor linear_backward_input(const tensor& dy, const tensor& weight) {
  require_matrix("linear_backward_input", weight);
  require_rows("linear_backward_input", "dy", dy);
  auto out = weight.shape()[0], in = weight.shape()[1];
  require_argument("linear_backward_input", "dy", dy, weight.dtype(), with_last_axis(dy.shape(), out),
                   weight.device());
  auto dx = tensor::empty(with_last_axis(dy.shape(), in), dy.dtype(), dy.device());
  products_on(dy.device())
      .matrix_product({.rows = rows_of(dx), .columns = in, .inner = out}, dy, weight, {}, dx);
  return dx;
}

void linear_backward_weight(const tensor& x, const tensor& dy, tensor weight_gradient, tensor bias_gradient,
                            gradient_mode mode) {
  require_rows("linear_backward_weight", "x", x);
  require_rows("linear_backward_weight", "dy", dy);
  auto in = x.shape()[-1], out = dy.shape()[-1];
  require_argument("linear_backward_weight", "dy", dy, x.dtype(), with_last_axis(x.shape(), out), x.device());
  if (weight_gradient.defined())
    require_argument("linear_backward_weight", "weight_gradient", weight_gradient, dtype::f32, {out, in},
                     x.device());
  if (bias_gradient.defined())
    require_argument("linear_backward_weight", "bias_gradient", bias_gradient, dtype::f32, {out}, x.device());
  const auto& products = products_on(x.device());
  if (weight_gradient.defined())
    products.matrix_product({.rows = out,
                             .columns = in,
                             .inner = rows_of(x),
                             .left_is_transposed = true,
                             .accumulate = mode == gradient_mode::accumulate},
                            dy, x, {}, weight_gradient);
  if (bias_gradient.defined()) products.row_sum(dy, bias_gradient, mode);
}

void linear_backward_bias(const tensor& dy, tensor bias_gradient, gradient_mode mode) {
  require_rows("linear_backward_bias", "dy", dy);
  require_argument("linear_backward_bias", "bias_gradient", bias_gradient, dtype::f32, {dy.shape()[-1]},
                   dy.device());
  products_on(dy.device()).row_sum(dy, bias_gradient, mode);
}

}  // namespace troupe
