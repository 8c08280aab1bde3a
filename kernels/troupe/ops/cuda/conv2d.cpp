#include "troupe/ops/cuda/bias.hpp"
#include "troupe/ops/cuda/direct_convolution.hpp"
#include "troupe/ops/cuda/families.hpp"
#include "troupe/ops/cuda/library_convolution.hpp"

// By cuDNN where it can, else by the project's own kernels. Both add up in a fixed order.

namespace troupe::cuda {
namespace {

/// What comes out of a convolution, as what goes over its pixels sees it.
batch_norm_problem pixels_of(const conv2d_problem& of) {
  return {of.batch, of.out_channels, of.out.h * of.out.w};
}

void forward(const conv2d_problem& of, const tensor& x, const tensor& weight, const tensor& bias, tensor& y) {
  if (!library_convolution(convolution_pass::forward, of, x, weight, y)) direct_forward(of, x, weight, y);
  add_channel_bias(pixels_of(of), bias, of.options.relu, y);
}

void backward_input(const conv2d_problem& of, const tensor& dy, const tensor& weight, tensor& dx) {
  if (!library_convolution(convolution_pass::input_gradient, of, dx, weight, dy))
    direct_input_gradient(of, dy, weight, dx);
}

/// cuDNN's gradient is of f32.
bool weight_gradient_by_library(const conv2d_problem& of, const tensor& x, const tensor& dy, tensor& dweight,
                                gradient_mode mode) {
  constexpr auto pass = convolution_pass::weight_gradient;
  if (dweight.dtype() == dtype::f32) return library_convolution(pass, of, x, dweight, dy, mode);
  auto found = tensor::empty(dweight.shape(), dtype::f32, dweight.device());
  if (!library_convolution(pass, of, x, found, dy)) return false;
  const auto& kernels = kernels_on(dweight.device());
  if (mode == gradient_mode::accumulate)
    kernels.elementwise.axpy(1, found, dweight);
  else
    kernels.convert.cast(found, dweight);
  return true;
}

void backward_weight(const conv2d_problem& of, const tensor& x, const tensor& dy, tensor& dweight,
                     tensor& dbias, gradient_mode mode) {
  if (!weight_gradient_by_library(of, x, dy, dweight, mode)) direct_weight_gradient(of, x, dy, dweight, mode);
  if (dbias.defined()) sum_channels(pixels_of(of), dy, dbias, mode);
}

}  // namespace

conv2d_kernels conv2d() {
  return {.forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
}

}  // namespace troupe::cuda
