#include <algorithm>

#include "troupe/ops/cpu/convolution.hpp"
#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/in_blocks.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe::cpu {
namespace {

void copy(const float* from, float* to, std::int64_t size) { std::copy_n(from, size, to); }

TROUPE_CLONES void add(const float* a, const float* b, float* sum, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) sum[i] = a[i] + b[i];
}

/// `value`, converted to f32 if convolutions do not take its dtype. Undefined stays undefined.
tensor taken(const tensor& value) {
  if (!value.defined() || convolution_takes(value.type())) return value;
  auto converted = tensor::empty(value.extents());
  map_in_blocks(copy, converted, value);
  return converted;
}

/// Calls `compute` with `result`, or with an f32 tensor that is converted afterwards.
template <class Compute>
void into(tensor& result, const Compute& compute) {
  if (convolution_takes(result.type())) return compute(result);
  auto computed = tensor::empty(result.extents());
  compute(computed);
  map_in_blocks(copy, result, computed);
}

bool is_in_place(const tensor& gradient, gradient_mode mode) {
  return gradient.type() == dtype::f32 && mode == gradient_mode::assign;
}

/// Where to write the f32 gradient that `store` then brings into `gradient`.
tensor place_for(const tensor& gradient, gradient_mode mode) {
  if (!gradient.defined() || is_in_place(gradient, mode)) return gradient;
  return tensor::empty(gradient.extents());
}

void store(const tensor& computed, tensor& gradient, gradient_mode mode) {
  if (!gradient.defined() || is_in_place(gradient, mode)) return;
  if (mode == gradient_mode::accumulate)
    map_in_blocks(add, gradient, gradient, computed);
  else
    map_in_blocks(copy, gradient, computed);
}

void forward(const conv2d_problem& of, const tensor& x, const tensor& weight, const tensor& bias, tensor& y) {
  into(y, [&](tensor& result) { convolution_forward(of, taken(x), taken(weight), taken(bias), result); });
}

void backward_input(const conv2d_problem& of, const tensor& dy, const tensor& weight, tensor& dx) {
  into(dx, [&](tensor& result) { convolution_backward_input(of, taken(dy), taken(weight), result); });
}

void backward_weight(const conv2d_problem& of, const tensor& x, const tensor& dy, tensor& dweight,
                     tensor& dbias, gradient_mode mode) {
  auto weight_part = place_for(dweight, mode), bias_part = place_for(dbias, mode);
  convolution_backward_weight(of, taken(x), taken(dy), weight_part, bias_part);
  store(weight_part, dweight, mode);
  store(bias_part, dbias, mode);
}

}  // namespace

conv2d_kernels conv2d() {
  return {.forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
}

}  // namespace troupe::cpu
