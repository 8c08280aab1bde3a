#include "troupe/ops/cuda/families.hpp"
#include "troupe/ops/cuda/matrix_product.hpp"
#include "troupe/ops/cuda/row_sum.hpp"

namespace troupe::cuda {
namespace {

std::int64_t rows_of(const tensor& matrix) {
  auto columns = matrix.extents()[-1];
  return columns == 0 ? 0 : matrix.num_elements() / columns;
}

void forward(const tensor& x, const tensor& weight, const tensor& bias, linear_activation activation,
             tensor& y) {
  matrix_product({.rows = rows_of(x),
                  .columns = weight.extents()[0],
                  .inner = weight.extents()[1],
                  .right_is_transposed = true,
                  .relu = activation == linear_activation::relu},
                 x, weight, bias, y);
}

void backward_input(const tensor& dy, const tensor& weight, tensor& dx) {
  matrix_product({.rows = rows_of(dx), .columns = weight.extents()[1], .inner = weight.extents()[0]}, dy,
                 weight, {}, dx);
}

void backward_weight(const tensor& x, const tensor& dy, tensor& weight_gradient, tensor& bias_gradient,
                     gradient_mode mode) {
  auto out = weight_gradient.extents()[0], in = weight_gradient.extents()[1];
  matrix_product({.rows = out,
                  .columns = in,
                  .inner = rows_of(x),
                  .left_is_transposed = true,
                  .accumulate = mode == gradient_mode::accumulate},
                 dy, x, {}, weight_gradient);
  if (bias_gradient.defined()) row_sum(dy, bias_gradient, mode);
}

}  // namespace

linear_kernels linear() {
  return {.forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
}

}  // namespace troupe::cuda
