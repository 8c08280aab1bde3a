#include "troupe/ops/conv2d.hpp"

#include <algorithm>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {
namespace {

std::string to_string(size_2d size) { return std::to_string(size.h) + " x " + std::to_string(size.w); }

void require_at_least(std::string_view operation, std::string_view option, size_2d value,
                      std::int64_t smallest) {
  constexpr auto largest = std::int64_t{1} << 31;  // so that nothing overflows
  if (std::min(value.h, value.w) >= smallest && std::max(value.h, value.w) < largest) return;
  throw_invalid(operation, std::string(option) + " from " + std::to_string(smallest) + " to 2^31",
                to_string(value));
}

void require_options(std::string_view operation, const conv2d_options& options) {
  require_at_least(operation, "stride", options.stride, 1);
  require_at_least(operation, "padding", options.padding, 0);
  require_at_least(operation, "dilation", options.dilation, 1);
  if (options.groups < 1) throw_invalid(operation, "groups >= 1", std::to_string(options.groups));
}

std::int64_t positions(std::int64_t size, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
                       std::int64_t dilation) {
  auto room = size + 2 * padding - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

/// Checks options and the extents of x [N, C, H, W] and weight [O, C / groups, KH, KW] against each other.
conv2d_problem problem_of(std::string_view operation, const shape& x, const shape& weight,
                          const conv2d_options& options) {
  require_options(operation, options);
  if (x.rank() != 4 || weight.rank() != 4)
    throw_invalid(operation, "x [N, C, H, W] and weight [O, C / groups, KH, KW]",
                  to_string(x) + " and " + to_string(weight));
  require_at_least(operation, "kernel", {weight[2], weight[3]}, 0);
  conv2d_problem problem{x[0], x[1], weight[0], {x[2], x[3]}, {}, {weight[2], weight[3]}, options};
  if (weight.num_elements() == 0 || problem.out_channels % options.groups != 0 ||
      problem.in_channels != weight[1] * options.groups)
    throw_invalid(operation,
                  "weight of x's channels / groups and a multiple of " + std::to_string(options.groups) +
                      " output channels, none 0",
                  to_string(weight) + " for x " + to_string(x));
  auto [stride, padding, dilation, groups, relu] = options;
  problem.out = {positions(problem.in.h, problem.kernel.h, stride.h, padding.h, dilation.h),
                 positions(problem.in.w, problem.kernel.w, stride.w, padding.w, dilation.w)};
  if (problem.out.h < 1 || problem.out.w < 1 || problem.in.h < 1 || problem.in.w < 1)
    throw_invalid(operation, "an image at least as large as the kernel",
                  to_string(problem.in) + " padded by " + to_string(padding) + " for a kernel of " +
                      to_string(problem.kernel) + " with dilation " + to_string(dilation));
  return problem;
}

shape extents_of_y(const conv2d_problem& problem) {
  return {problem.batch, problem.out_channels, problem.out.h, problem.out.w};
}

/// Requires a defined tensor with the dtype and device of `model` and these extents.
void require_beside(std::string_view operation, std::string_view argument, const tensor& value,
                    const tensor& model, const shape& extents) {
  if (value.defined() && value.dtype() == model.dtype() && value.device() == model.device() &&
      value.shape() == extents)
    return;
  throw_invalid(operation,
                std::string(argument) + " " + std::string(to_string(model.dtype())) + to_string(extents) +
                    " on " + to_string(model.device()),
                describe(value));
}

void require_gradient(std::string_view argument, const tensor& value, const tensor& x, const shape& extents) {
  if (value.defined() && (value.dtype() == dtype::f32 || value.dtype() == x.dtype()) &&
      value.device() == x.device() && value.shape() == extents)
    return;
  throw_invalid("conv2d_backward_weight",
                std::string(argument) + " f32 or " + std::string(to_string(x.dtype())) + to_string(extents),
                describe(value));
}

/// Requires an output's gradient for x, whatever the convolution.
void require_output_gradient(const tensor& x, const tensor& dy) {
  if (dy.defined() && dy.shape().rank() == 4 && dy.dtype() == x.dtype() && dy.device() == x.device()) return;
  throw_invalid("conv2d_backward_weight",
                "dy " + std::string(to_string(x.dtype())) + "[N, O, OH, OW] on " + to_string(x.device()),
                describe(dy));
}

}  // namespace

tensor conv2d_forward(const tensor& x, const tensor& weight, const tensor& bias,
                      const conv2d_options& options) {
  require_floating("conv2d", "x", x);
  require_beside("conv2d", "weight", weight, x, weight.shape());
  auto problem = problem_of("conv2d", x.shape(), weight.shape(), options);
  if (bias.defined()) require_beside("conv2d", "bias", bias, x, {problem.out_channels});
  auto y = tensor::empty(extents_of_y(problem), x.dtype(), x.device());
  if (problem.batch > 0) kernels_on(x.device()).conv2d.forward(problem, x, weight, bias, y);
  return y;
}

tensor conv2d_backward_input(const tensor& dy, const tensor& weight, const shape& x_extents,
                             const conv2d_options& options) {
  constexpr const char* operation = "conv2d_backward_input";
  require_floating(operation, "weight", weight);
  auto problem = problem_of(operation, x_extents, weight.shape(), options);
  require_beside(operation, "dy", dy, weight, extents_of_y(problem));
  auto dx = tensor::empty(x_extents, dy.dtype(), dy.device());
  if (problem.batch > 0) kernels_on(dy.device()).conv2d.backward_input(problem, dy, weight, dx);
  return dx;
}

void conv2d_backward_weight(const tensor& x, const tensor& dy, tensor weight_gradient, tensor bias_gradient,
                            const conv2d_options& options, gradient_mode mode) {
  constexpr const char* operation = "conv2d_backward_weight";
  require_floating(operation, "x", x);
  conv2d_problem problem;
  if (weight_gradient.defined()) {
    require_gradient("weight_gradient", weight_gradient, x, weight_gradient.shape());
    problem = problem_of(operation, x.shape(), weight_gradient.shape(), options);
    require_beside(operation, "dy", dy, x, extents_of_y(problem));
  }
  if (bias_gradient.defined()) {
    require_output_gradient(x, dy);
    require_gradient("bias_gradient", bias_gradient, x, {dy.shape()[1]});
  }
  const auto& kernels = kernels_on(x.device()).conv2d;
  auto is_empty = x.num_elements() == 0;
  if (weight_gradient.defined() && !is_empty) kernels.backward_weight(problem, x, dy, weight_gradient, mode);
  if (bias_gradient.defined() && !is_empty) kernels.backward_bias(dy, bias_gradient, mode);
  if (!is_empty || mode == gradient_mode::accumulate) return;
  if (weight_gradient.defined()) weight_gradient.fill_zero();
  if (bias_gradient.defined()) bias_gradient.fill_zero();
}

}  // namespace troupe
