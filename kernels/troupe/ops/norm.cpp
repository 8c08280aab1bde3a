#include "troupe/ops/norm.hpp"

#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

/// A floating [C] on x's device, or undefined.
void require_weight(std::string_view operation, std::string_view name, const tensor& weight,
                    const tensor& x) {
  if (!weight.defined()) return;
  require_floating(operation, name, weight);
  require_argument(operation, name, weight, weight.dtype(), {x.shape()[-1]});
  require_on(operation, name, weight, x.device());
}

void require_row_values(std::string_view operation, std::string_view name, const tensor& value,
                        const tensor& x) {
  require_argument(operation, name, value, dtype::f32, shape_of_rows(x));
  require_on(operation, name, value, x.device());
}

tensor empty_rows(const tensor& x) { return tensor::empty(shape_of_rows(x), dtype::f32, x.device()); }

void require_backward(std::string_view operation, const tensor& dy, const tensor& x, const tensor& rstd) {
  require_nonempty_rows(operation, "x", x);
  require_like(operation, "dy", dy, x);
  require_row_values(operation, "rstd", rstd, x);
}

tensor backward_input(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& mean,
                      const tensor& rstd) {
  auto dx = empty_like(x);
  kernels_on(x.device()).norm.backward_input(dy, x, gamma, mean, rstd, dx);
  return dx;
}

}  // namespace

layer_norm_result layer_norm_forward(const tensor& x, const tensor& gamma, const tensor& beta, double eps) {
  require_nonempty_rows("layer_norm", "x", x);
  require_weight("layer_norm", "gamma", gamma, x);
  require_weight("layer_norm", "beta", beta, x);
  layer_norm_result result{empty_like(x), empty_rows(x), empty_rows(x)};
  kernels_on(x.device()).norm.forward(x, gamma, beta, eps, result.y, result.mean, result.rstd);
  return result;
}

tensor layer_norm_backward_input(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& mean,
                                 const tensor& rstd) {
  constexpr auto operation = "layer_norm_backward_input";
  require_backward(operation, dy, x, rstd);
  require_row_values(operation, "mean", mean, x);
  require_weight(operation, "gamma", gamma, x);
  return backward_input(dy, x, gamma, mean, rstd);
}

void layer_norm_backward_weight(const tensor& dy, const tensor& x, const tensor& mean, const tensor& rstd,
                                tensor dgamma, tensor dbeta, gradient_mode mode) {
  constexpr auto operation = "layer_norm_backward_weight";
  require_backward(operation, dy, x, rstd);
  require_row_values(operation, "mean", mean, x);
  require_weight(operation, "dgamma", dgamma, x);
  require_weight(operation, "dbeta", dbeta, x);
  if (!dgamma.defined() && !dbeta.defined()) return;
  kernels_on(x.device()).norm.backward_weight(dy, x, mean, rstd, dgamma, dbeta, mode);
}

rms_norm_result rms_norm_forward(const tensor& x, const tensor& gamma, double eps) {
  require_nonempty_rows("rms_norm", "x", x);
  require_weight("rms_norm", "gamma", gamma, x);
  rms_norm_result result{empty_like(x), empty_rows(x)};
  tensor no_mean;
  kernels_on(x.device()).norm.forward(x, gamma, {}, eps, result.y, no_mean, result.rstd);
  return result;
}

tensor rms_norm_backward_input(const tensor& dy, const tensor& x, const tensor& gamma, const tensor& rstd) {
  constexpr auto operation = "rms_norm_backward_input";
  require_backward(operation, dy, x, rstd);
  require_weight(operation, "gamma", gamma, x);
  return backward_input(dy, x, gamma, {}, rstd);
}

void rms_norm_backward_weight(const tensor& dy, const tensor& x, const tensor& rstd, tensor dgamma,
                              gradient_mode mode) {
  constexpr auto operation = "rms_norm_backward_weight";
  require_backward(operation, dy, x, rstd);
  require_weight(operation, "dgamma", dgamma, x);
  tensor no_dbeta;
  if (dgamma.defined()) kernels_on(x.device()).norm.backward_weight(dy, x, {}, rstd, dgamma, no_dbeta, mode);
}

}  // namespace troupe
