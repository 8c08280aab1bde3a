#include "troupe/ops/batch_norm.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

batch_norm_problem problem_of(std::string_view operation, const tensor& x) {
  require_floating(operation, "x", x);
  if (x.shape().rank() < 2 || x.shape()[1] < 1)
    throw_invalid(operation, "x [N, C, ...] of at least one channel", describe(x));
  batch_norm_problem problem{x.shape()[0], x.shape()[1], 1};
  for (int axis = 2; axis < x.shape().rank(); ++axis) problem.size *= x.shape()[axis];
  return problem;
}

/// Requires one number per channel on x's device: f32, or also x's dtype if `or_like_x`.
void require_channels(std::string_view operation, std::string_view argument, const tensor& value,
                      const tensor& x, bool or_like_x) {
  auto type_fits = value.dtype() == dtype::f32 || (or_like_x && value.dtype() == x.dtype());
  if (value.defined() && type_fits && value.device() == x.device() && value.shape() == shape{x.shape()[1]})
    return;
  throw_invalid(operation,
                std::string(argument) + " f32" + (or_like_x ? " or of x's dtype " : "") +
                    to_string(shape{x.shape()[1]}) + " for x " + describe(x),
                describe(value));
}

void require_affine(std::string_view operation, const tensor& weight, const tensor& bias, const tensor& x) {
  if (!weight.defined() && !bias.defined()) return;
  require_channels(operation, "weight", weight, x, true);
  require_channels(operation, "bias", bias, x, true);
}

void require_statistics(std::string_view operation, const tensor& mean, const tensor& rstd, const tensor& x) {
  require_channels(operation, "mean", mean, x, false);
  require_channels(operation, "rstd", rstd, x, false);
}

tensor one_per_channel(const tensor& x) { return tensor::empty({x.shape()[1]}, dtype::f32, x.device()); }

}  // namespace

batch_norm_result batch_norm_forward(const tensor& x, const tensor& weight, const tensor& bias,
                                     tensor running_mean, tensor running_variance,
                                     const batch_norm_options& options) {
  constexpr const char* operation = "batch_norm";
  auto problem = problem_of(operation, x);
  require_affine(operation, weight, bias, x);
  if (running_mean.defined() || running_variance.defined()) {
    require_channels(operation, "running_mean", running_mean, x, false);
    require_channels(operation, "running_variance", running_variance, x, false);
  }
  if (problem.batch * problem.size < 2)
    throw_invalid(operation, "at least two elements in each channel to take the variance of", describe(x));
  batch_norm_result result{empty_like(x), one_per_channel(x), one_per_channel(x)};
  kernels_on(x.device())
      .batch_norm.forward(problem, x, weight, bias, options, running_mean, running_variance, result);
  return result;
}

tensor batch_norm_inference(const tensor& x, const tensor& weight, const tensor& bias,
                            const tensor& running_mean, const tensor& running_variance,
                            const batch_norm_options& options) {
  constexpr const char* operation = "batch_norm_inference";
  auto problem = problem_of(operation, x);
  require_affine(operation, weight, bias, x);
  require_channels(operation, "running_mean", running_mean, x, false);
  require_channels(operation, "running_variance", running_variance, x, false);
  auto y = empty_like(x);
  kernels_on(x.device())
      .batch_norm.inference(problem, x, weight, bias, running_mean, running_variance, options.epsilon, y);
  return y;
}

tensor batch_norm_backward_input(const tensor& dy, const tensor& x, const tensor& weight, const tensor& mean,
                                 const tensor& rstd) {
  constexpr const char* operation = "batch_norm_backward_input";
  auto problem = problem_of(operation, x);
  require_like(operation, "dy", dy, x);
  if (weight.defined()) require_channels(operation, "weight", weight, x, true);
  require_statistics(operation, mean, rstd, x);
  auto dx = empty_like(x);
  kernels_on(x.device()).batch_norm.backward_input(problem, dy, x, weight, mean, rstd, dx);
  return dx;
}

void batch_norm_backward_weight(const tensor& x, const tensor& dy, const tensor& mean, const tensor& rstd,
                                tensor weight_gradient, tensor bias_gradient, gradient_mode mode) {
  constexpr const char* operation = "batch_norm_backward_weight";
  auto problem = problem_of(operation, x);
  require_like(operation, "dy", dy, x);
  require_statistics(operation, mean, rstd, x);
  if (weight_gradient.defined()) require_channels(operation, "weight_gradient", weight_gradient, x, true);
  if (bias_gradient.defined()) require_channels(operation, "bias_gradient", bias_gradient, x, true);
  kernels_on(x.device())
      .batch_norm.backward_weight(problem, x, dy, mean, rstd, weight_gradient, bias_gradient, mode);
}

}  // namespace troupe
