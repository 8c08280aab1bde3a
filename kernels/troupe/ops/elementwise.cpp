#include "troupe/ops/elementwise.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/detail/broadcast.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe {
namespace {

bool is_integer(dtype type) { return type == dtype::i64 || type == dtype::i32; }

/// The common dtype of both operands. Throws unless they are floating, or integers of the same dtype.
dtype common_type(std::string_view operation, const tensor& a, const tensor& b) {
  if (a.defined() && b.defined()) {
    if (is_floating(a.dtype()) && is_floating(b.dtype()))
      return a.dtype() == b.dtype() ? a.dtype() : dtype::f32;
    if (is_integer(a.dtype()) && a.dtype() == b.dtype()) return a.dtype();
  }
  throw_invalid(operation, "two floating operands, or two of i64 or of i32",
                describe(a) + " and " + describe(b));
}

tensor binary(std::string_view operation, const tensor& a, const tensor& b, dtype type,
              elementwise_kernels::binary elementwise_kernels::*entry) {
  require_on(operation, "b", b, a.device());
  auto c = tensor::empty(broadcast_shape(operation, a.shape(), b.shape()), type, a.device());
  (kernels_on(a.device()).elementwise.*entry)(a, b, c);
  return c;
}

tensor arithmetic(std::string_view operation, const tensor& a, const tensor& b,
                  elementwise_kernels::binary elementwise_kernels::*entry) {
  return binary(operation, a, b, common_type(operation, a, b), entry);
}

tensor comparison(std::string_view operation, const tensor& a, const tensor& b,
                  elementwise_kernels::binary elementwise_kernels::*entry) {
  common_type(operation, a, b);
  return binary(operation, a, b, dtype::boolean, entry);
}

tensor unary(std::string_view operation, const tensor& x,
             elementwise_kernels::unary elementwise_kernels::*entry) {
  require_floating(operation, "x", x);
  auto y = empty_like(x);
  (kernels_on(x.device()).elementwise.*entry)(x, y);
  return y;
}

using kernels = elementwise_kernels;

}  // namespace

tensor add(const tensor& a, const tensor& b) { return arithmetic("add", a, b, &kernels::add); }
tensor subtract(const tensor& a, const tensor& b) { return arithmetic("subtract", a, b, &kernels::subtract); }
tensor multiply(const tensor& a, const tensor& b) { return arithmetic("multiply", a, b, &kernels::multiply); }
tensor minimum(const tensor& a, const tensor& b) { return arithmetic("minimum", a, b, &kernels::minimum); }
tensor maximum(const tensor& a, const tensor& b) { return arithmetic("maximum", a, b, &kernels::maximum); }

tensor divide(const tensor& a, const tensor& b) {
  require_floating("divide", "a", a);
  return arithmetic("divide", a, b, &kernels::divide);
}

tensor equal(const tensor& a, const tensor& b) { return comparison("equal", a, b, &kernels::equal); }
tensor less(const tensor& a, const tensor& b) { return comparison("less", a, b, &kernels::less); }
tensor greater(const tensor& a, const tensor& b) { return comparison("greater", b, a, &kernels::less); }

tensor where(const tensor& condition, const tensor& a, const tensor& b) {
  if (!condition.defined() || condition.dtype() != dtype::boolean)
    throw_invalid("where", "condition of bool", describe(condition));
  require_floating("where", "a", a);
  require_floating("where", "b", b);
  require_on("where", "a", a, condition.device());
  require_on("where", "b", b, condition.device());
  auto extents = broadcast_shape("where", condition.shape(), broadcast_shape("where", a.shape(), b.shape()));
  auto c = tensor::empty(std::move(extents), common_type("where", a, b), a.device());
  kernels_on(a.device()).elementwise.where(condition, a, b, c);
  return c;
}

tensor broadcast_to(const tensor& x, const shape& extents) {
  require_floating("broadcast_to", "x", x);
  if (x.shape() == extents) return x;
  if (broadcast_shape("broadcast_to", x.shape(), extents) != extents)
    throw_invalid("broadcast_to", "a shape that " + to_string(x.shape()) + " broadcasts to",
                  to_string(extents));
  auto y = tensor::empty(extents, x.dtype(), x.device());
  // x - 0 is x to the last bit, -0 too.
  kernels_on(x.device()).elementwise.subtract(x, tensor::zeros({}, x.dtype(), x.device()), y);
  return y;
}

tensor reduce_to_shape(const tensor& gradient, const shape& extents) {
  require_floating("reduce_to_shape", "gradient", gradient);
  if (gradient.shape() == extents) return gradient;
  if (broadcast_shape("reduce_to_shape", gradient.shape(), extents) != gradient.shape())
    throw_invalid("reduce_to_shape", "a shape that broadcasts to " + to_string(gradient.shape()),
                  to_string(extents));
  reduction_options options;
  auto missing = gradient.shape().rank() - extents.rank();
  for (int axis = 0; axis < gradient.shape().rank(); ++axis)
    if (axis < missing || (extents[axis - missing] == 1 && gradient.shape()[axis] != 1))
      options.axes.push_back(axis);
  return (options.axes.empty() ? gradient : sum(gradient, options)).reshape(extents);
}

tensor exp(const tensor& x) { return unary("exp", x, &kernels::exp); }
tensor log(const tensor& x) { return unary("log", x, &kernels::log); }
tensor sqrt(const tensor& x) { return unary("sqrt", x, &kernels::sqrt); }
tensor negate(const tensor& x) { return unary("negate", x, &kernels::negate); }
tensor abs(const tensor& x) { return unary("abs", x, &kernels::abs); }
tensor reciprocal(const tensor& x) { return unary("reciprocal", x, &kernels::reciprocal); }

tensor add(const tensor& x, float number) {
  require_floating("add", "x", x);
  auto y = empty_like(x);
  kernels_on(x.device()).elementwise.add_number(x, number, y);
  return y;
}

tensor multiply(const tensor& x, float number) {
  require_floating("multiply", "x", x);
  auto y = empty_like(x);
  kernels_on(x.device()).elementwise.multiply_by_number(x, number, y);
  return y;
}

tensor clamp(const tensor& x, float low, float high) {
  require_floating("clamp", "x", x);
  if (!(low <= high))
    throw_invalid("clamp", "low <= high", std::to_string(low) + " and " + std::to_string(high));
  auto y = empty_like(x);
  kernels_on(x.device()).elementwise.clamp(x, low, high, y);
  return y;
}

void axpy(float alpha, const tensor& x, tensor y) {
  require_floating("axpy", "x", x);
  require_floating("axpy", "y", y);
  require_argument("axpy", "x", x, x.dtype(), y.shape());
  require_on("axpy", "x", x, y.device());
  kernels_on(y.device()).elementwise.axpy(alpha, x, y);
}

void scale(tensor x, float factor) {
  require_floating("scale", "x", x);
  kernels_on(x.device()).elementwise.multiply_by_number(x, factor, x);
}

}  // namespace troupe
