#include "troupe/ops/cpu/convolution/convolution.hpp"
#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/reductions/weight_gradient.hpp"

namespace troupe::cpu {
namespace {

tensor as_f32(const tensor& value) { return value.defined() ? float_copy(value) : value; }

/// Calls `compute` with `result`, or with an f32 tensor that is rounded afterwards.
template <class Compute>
void into(tensor& result, const Compute& compute) {
  if (result.dtype() == dtype::f32) return compute(result);
  auto computed = tensor::empty(result.shape());
  compute(computed);
  store_floats(computed, result);
}

void forward(const conv2d_problem& problem, const tensor& x, const tensor& weight, const tensor& bias,
             tensor& y) {
  into(y, [&](tensor& result) {
    convolution_forward(problem, as_f32(x), as_f32(weight), as_f32(bias), result);
  });
}

void backward_input(const conv2d_problem& problem, const tensor& dy, const tensor& weight, tensor& dx) {
  into(dx, [&](tensor& result) { convolution_backward_input(problem, as_f32(dy), as_f32(weight), result); });
}

void backward_weight(const conv2d_problem& problem, const tensor& x, const tensor& dy, tensor& dweight,
                     gradient_mode mode) {
  auto place = place_for_gradient(dweight, mode);
  convolution_backward_weight(problem, as_f32(x), as_f32(dy), place);
  store_gradient(place, dweight, mode);
}

void backward_bias(const tensor& dy, tensor& dbias, gradient_mode mode) {
  auto place = place_for_gradient(dbias, mode);
  convolution_backward_bias(as_f32(dy), place);
  store_gradient(place, dbias, mode);
}

}  // namespace

conv2d_kernels conv2d() {
  return {.forward = forward,
          .backward_input = backward_input,
          .backward_weight = backward_weight,
          .backward_bias = backward_bias};
}

}  // namespace troupe::cpu
