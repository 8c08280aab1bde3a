#include "troupe/ops/convert.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/ops/detail/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {

tensor cast(const tensor& x, dtype type) {
  if (!x.defined()) throw_invalid("cast", "a defined x", describe(x));
  if (x.dtype() == type) return x;
  auto y = tensor::empty(x.shape(), type, x.device());
  kernels_on(x.device()).convert.cast(x, y);
  return y;
}

tensor to_float(const tensor& x, float scale) {
  require_argument("to_float", "x", x, dtype::u8, x.shape());
  auto y = tensor::empty(x.shape(), dtype::f32, x.device());
  kernels_on(x.device()).convert.to_float(x, scale, y);
  return y;
}

}  // namespace troupe
