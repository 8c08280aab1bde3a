#include "troupe/autograd/functions.hpp"
#include "troupe/autograd/functions/one_input.hpp"
#include "troupe/ops/elementwise.hpp"

namespace troupe {
namespace {

/// dy where the condition holds, else 0.
tensor passed(const tensor& condition, const tensor& dy) {
  return where(condition, dy, tensor::zeros({}, dy.dtype(), dy.device()));
}

/// dy times the sign of x.
tensor signed_by(const tensor& dy, const tensor& x) {
  auto zero = tensor::zeros({}, x.dtype(), x.device());
  return subtract(passed(greater(x, zero), dy), passed(less(x, zero), dy));
}

}  // namespace

variable exp(const variable& x) {
  auto y = exp(x.value);
  return record_one_input(x, y, [y](const tensor& dy) { return multiply(dy, y); });
}

variable log(const variable& x) {
  return record_one_input(x, log(x.value), [input = x.value](const tensor& dy) { return divide(dy, input); });
}

variable sqrt(const variable& x) {
  auto y = sqrt(x.value);
  return record_one_input(x, y, [y](const tensor& dy) { return divide(dy, multiply(y, 2)); });
}

variable negate(const variable& x) {
  return record_one_input(x, negate(x.value), [](const tensor& dy) { return negate(dy); });
}

variable abs(const variable& x) {
  return record_one_input(x, abs(x.value),
                          [input = x.value](const tensor& dy) { return signed_by(dy, input); });
}

variable reciprocal(const variable& x) {
  auto y = reciprocal(x.value);
  return record_one_input(x, y, [y](const tensor& dy) { return negate(multiply(multiply(dy, y), y)); });
}

variable add(const variable& x, float number) {
  return record_one_input(x, add(x.value, number), [](const tensor& dy) { return dy; });
}

variable multiply(const variable& x, float number) {
  return record_one_input(x, multiply(x.value, number),
                          [number](const tensor& dy) { return multiply(dy, number); });
}

variable clamp(const variable& x, float low, float high) {
  auto y = clamp(x.value, low, high);
  return record_one_input(x, y,
                          [input = x.value, y](const tensor& dy) { return passed(equal(input, y), dy); });
}

}  // namespace troupe
