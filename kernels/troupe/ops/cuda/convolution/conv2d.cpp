#include "troupe/ops/cuda/convolution/convolution_passes.hpp"
#include "troupe/ops/cuda/kernel_tables.hpp"

// Uses cuDNN if it supports the problem, else the project's kernels. Both sum in a fixed order.

namespace troupe::cuda {
namespace {

/// The output of a convolution as [batch, channels, size].
batch_norm_problem pixels_of(const conv2d_problem& problem) {
  return {problem.batch, problem.out_channels, problem.out.h * problem.out.w};
}

void forward(const conv2d_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
             tensor& y) {
  if (!cudnn_convolution(convolution_pass::forward, problem, x, weight, y))
    direct_forward(problem, x, weight, y);
  add_channel_bias(pixels_of(problem), bias, problem.options.relu, y);
}

void backward_input(const conv2d_problem& problem, const tensor& dy, const tensor& weight, tensor& dx) {
  if (!cudnn_convolution(convolution_pass::input_gradient, problem, dx, weight, dy))
    direct_input_gradient(problem, dy, weight, dx);
}

/// cuDNN computes the weight gradient in f32.
bool weight_gradient_by_library(const conv2d_problem& problem, const tensor& x, const tensor& dy,
                                tensor& dweight, gradient_mode mode) {
  constexpr auto pass = convolution_pass::weight_gradient;
  if (dweight.dtype() == dtype::f32) return cudnn_convolution(pass, problem, x, dweight, dy, mode);
  auto found = tensor::empty(dweight.shape(), dtype::f32, dweight.device());
  if (!cudnn_convolution(pass, problem, x, found, dy)) return false;
  const auto& kernels = kernels_on(dweight.device());
  if (mode == gradient_mode::accumulate)
    kernels.elementwise.axpy(1, found, dweight);
  else
    kernels.convert.cast(found, dweight);
  return true;
}

void backward_weight(const conv2d_problem& problem, const tensor& x, const tensor& dy, tensor& dweight,
                     gradient_mode mode) {
  if (!weight_gradient_by_library(problem, x, dy, dweight, mode))
    direct_weight_gradient(problem, x, dy, dweight, mode);
}

void backward_bias(const tensor& dy, tensor& dbias, gradient_mode mode) {
  auto extents = dy.shape();
  sum_channels({extents[0], extents[1], extents[2] * extents[3]}, dy, dbias, mode);
}

}  // namespace

conv2d_kernels conv2d() {
  return {.forward = forward,
          .backward_input = backward_input,
          .backward_weight = backward_weight,
          .backward_bias = backward_bias};
}

}  // namespace troupe::cuda
