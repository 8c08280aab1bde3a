#include "troupe/ops/elementwise.hpp"

#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/arguments.hpp"
#include "troupe/ops/broadcast.hpp"
#include "troupe/ops/kernels/all.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe {
namespace {

bool is_integer(dtype type) { return type == dtype::i64 || type == dtype::i32; }

/// What both operands become before they meet. Throws unless they are floating or
/// agreeing integers.
dtype common_type(std::string_view operation, const tensor& a, const tensor& b) {
  if (a.defined() && b.defined()) {
    if (is_floating(a.type()) && is_floating(b.type())) return a.type() == b.type() ? a.type() : dtype::f32;
    if (is_integer(a.type()) && a.type() == b.type()) return a.type();
  }
  throw_invalid(operation, "two floating operands, or two of i64 or of i32",
                describe(a) + " and " + describe(b));
}

tensor binary(std::string_view operation, const tensor& a, const tensor& b, dtype type,
              elementwise_kernels::binary elementwise_kernels::*of) {
  require_on(operation, "b", b, a.where());
  auto c = tensor::empty(broadcast_shape(operation, a.extents(), b.extents()), type, a.where());
  (kernels_on(a.where()).elementwise.*of)(a, b, c);
  return c;
}

tensor arithmetic(std::string_view operation, const tensor& a, const tensor& b,
                  elementwise_kernels::binary elementwise_kernels::*of) {
  return binary(operation, a, b, common_type(operation, a, b), of);
}

tensor comparison(std::string_view operation, const tensor& a, const tensor& b,
                  elementwise_kernels::binary elementwise_kernels::*of) {
  common_type(operation, a, b);
  return binary(operation, a, b, dtype::boolean, of);
}

tensor unary(std::string_view operation, const tensor& x,
             elementwise_kernels::unary elementwise_kernels::*of) {
  require_floating(operation, "x", x);
  auto y = empty_like(x);
  (kernels_on(x.where()).elementwise.*of)(x, y);
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
  if (!condition.defined() || condition.type() != dtype::boolean)
    throw_invalid("where", "condition of bool", describe(condition));
  require_floating("where", "a", a);
  require_floating("where", "b", b);
  require_on("where", "a", a, condition.where());
  require_on("where", "b", b, condition.where());
  auto extents =
      broadcast_shape("where", condition.extents(), broadcast_shape("where", a.extents(), b.extents()));
  auto c = tensor::empty(std::move(extents), common_type("where", a, b), a.where());
  kernels_on(a.where()).elementwise.where(condition, a, b, c);
  return c;
}

tensor broadcast_to(const tensor& x, const shape& extents) {
  require_floating("broadcast_to", "x", x);
  if (x.extents() == extents) return x;
  if (broadcast_shape("broadcast_to", x.extents(), extents) != extents)
    throw_invalid("broadcast_to", "a shape that " + to_string(x.extents()) + " broadcasts to",
                  to_string(extents));
  auto y = tensor::empty(extents, x.type(), x.where());
  // x - 0 is x to the last bit, -0 too.
  kernels_on(x.where()).elementwise.subtract(x, tensor::zeros({}, x.type(), x.where()), y);
  return y;
}

tensor reduce_to_shape(const tensor& gradient, const shape& extents) {
  require_floating("reduce_to_shape", "gradient", gradient);
  if (gradient.extents() == extents) return gradient;
  if (broadcast_shape("reduce_to_shape", gradient.extents(), extents) != gradient.extents())
    throw_invalid("reduce_to_shape", "a shape that broadcasts to " + to_string(gradient.extents()),
                  to_string(extents));
  reduction_options options;
  auto missing = gradient.extents().rank() - extents.rank();
  for (int axis = 0; axis < gradient.extents().rank(); ++axis)
    if (axis < missing || (extents[axis - missing] == 1 && gradient.extents()[axis] != 1))
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
  kernels_on(x.where()).elementwise.add_number(x, number, y);
  return y;
}

tensor multiply(const tensor& x, float number) {
  require_floating("multiply", "x", x);
  auto y = empty_like(x);
  kernels_on(x.where()).elementwise.multiply_by_number(x, number, y);
  return y;
}

tensor clamp(const tensor& x, float low, float high) {
  require_floating("clamp", "x", x);
  if (!(low <= high))
    throw_invalid("clamp", "low <= high", std::to_string(low) + " and " + std::to_string(high));
  auto y = empty_like(x);
  kernels_on(x.where()).elementwise.clamp(x, low, high, y);
  return y;
}

void axpy(float alpha, const tensor& x, tensor y) {
  require_floating("axpy", "x", x);
  require_floating("axpy", "y", y);
  require_argument("axpy", "x", x, x.type(), y.extents());
  require_on("axpy", "x", x, y.where());
  kernels_on(y.where()).elementwise.axpy(alpha, x, y);
}

void scale(tensor x, float factor) {
  require_floating("scale", "x", x);
  kernels_on(x.where()).elementwise.multiply_by_number(x, factor, x);
}

}  // namespace troupe
