#include <algorithm>

#include "troupe/ops/cpu/convolution.hpp"
#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/map_in_blocks.hpp"
#include "troupe/ops/cpu/relu.hpp"
#include "troupe/ops/cpu/weight_gradient.hpp"

namespace troupe::cpu {
namespace {

void copy(const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); }

/// `value`, converted to f32 if convolutions do not support its dtype. Undefined stays undefined.
tensor taken(const tensor& value) {
  if (!value.defined() || convolution_takes(value.dtype())) return value;
  auto converted = tensor::empty(value.shape());
  map_in_blocks(copy, converted, value);
  return converted;
}

/// Calls `compute` with `result`, or with an f32 tensor that is converted afterwards.
template <class Compute>
void into(tensor& result, const Compute& compute) {
  if (convolution_takes(result.dtype())) return compute(result);
  auto computed = tensor::empty(result.shape());
  compute(computed);
  map_in_blocks(copy, result, computed);
}

void forward(const conv2d_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
             tensor& y) {
  auto without_relu = problem;
  without_relu.options.relu = false;
  into(y, [&](tensor& result) {
    convolution_forward(without_relu, taken(x), taken(weight), taken(bias), result);
  });
  if (problem.options.relu) relu_in_place(y);
}

void backward_input(const conv2d_problem& problem, const tensor& dy, const tensor& weight, tensor& dx) {
  into(dx, [&](tensor& result) { convolution_backward_input(problem, taken(dy), taken(weight), result); });
}

void backward_weight(const conv2d_problem& problem, const tensor& x, const tensor& dy, tensor& dweight,
                     tensor& dbias, gradient_mode mode) {
  auto weight_part = place_for_gradient(dweight, mode), bias_part = place_for_gradient(dbias, mode);
  convolution_backward_weight(problem, taken(x), taken(dy), weight_part, bias_part);
  store_gradient(weight_part, dweight, mode);
  store_gradient(bias_part, dbias, mode);
}

}  // namespace

conv2d_kernels conv2d() {
  return {.forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
}

}  // namespace troupe::cpu
