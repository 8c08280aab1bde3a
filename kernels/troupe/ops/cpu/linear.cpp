#include "troupe/ops/linear.hpp"

#include <algorithm>

#include "troupe/ops/arguments.hpp"
#include "troupe/ops/cpu/matrix_product.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe {
namespace {

TROUPE_CLONES void add_row(const float* row, float* sum, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) sum[i] += row[i];
}

void fill_rows(tensor& y, const tensor& bias) {
  auto from = bias.values<float>();
  auto to = y.values<float>();
  for (std::size_t first = 0; first < to.size(); first += from.size())
    std::ranges::copy(from, to.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace

tensor linear_forward(const tensor& x, const tensor& weight, const tensor& bias) {
  require_rank("linear", "weight", weight, dtype::f32, 2);
  require_rank("linear", "x", x, dtype::f32, 2);
  auto rows = x.extents()[0], out = weight.extents()[0], in = weight.extents()[1];
  require_argument("linear", "x", x, dtype::f32, {rows, in});
  auto y = tensor::empty({rows, out});
  if (bias.defined()) {
    require_argument("linear", "bias", bias, dtype::f32, {out});
    fill_rows(y, bias);
  }
  matrix_product(
      {.rows = rows, .columns = out, .inner = in, .right_is_transposed = true, .accumulate = bias.defined()},
      x.values<float>().data(), weight.values<float>().data(), y.values<float>().data());
  return y;
}

tensor linear_backward_input(const tensor& dy, const tensor& weight) {
  require_rank("linear_backward_input", "weight", weight, dtype::f32, 2);
  require_rank("linear_backward_input", "dy", dy, dtype::f32, 2);
  auto rows = dy.extents()[0], out = weight.extents()[0], in = weight.extents()[1];
  require_argument("linear_backward_input", "dy", dy, dtype::f32, {rows, out});
  auto dx = tensor::empty({rows, in});
  matrix_product({.rows = rows, .columns = in, .inner = out}, dy.values<float>().data(),
                 weight.values<float>().data(), dx.values<float>().data());
  return dx;
}

void linear_backward_weight(const tensor& x, const tensor& dy, tensor weight_gradient, tensor bias_gradient) {
  require_rank("linear_backward_weight", "x", x, dtype::f32, 2);
  require_rank("linear_backward_weight", "dy", dy, dtype::f32, 2);
  auto rows = x.extents()[0], in = x.extents()[1], out = dy.extents()[1];
  require_argument("linear_backward_weight", "dy", dy, dtype::f32, {rows, out});
  require_argument("linear_backward_weight", "weight_gradient", weight_gradient, dtype::f32, {out, in});
  if (bias_gradient.defined())
    require_argument("linear_backward_weight", "bias_gradient", bias_gradient, dtype::f32, {out});
  auto* gradient = dy.values<float>().data();
  matrix_product({.rows = out, .columns = in, .inner = rows, .left_is_transposed = true, .accumulate = true},
                 gradient, x.values<float>().data(), weight_gradient.values<float>().data());
  if (!bias_gradient.defined()) return;
  for (std::int64_t row = 0; row < rows; ++row)
    add_row(gradient + row * out, bias_gradient.values<float>().data(), out);
}

}  // namespace troupe
