#include "troupe/ops/activation.hpp"

#include "troupe/ops/arguments.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {

tensor relu_forward(const tensor& x) {
  require_floating("relu", "x", x);
  auto y = empty_like(x);
  kernels_on(x.where()).activation.relu_forward(x, y);
  return y;
}

tensor relu_backward(const tensor& dy, const tensor& y) {
  require_floating("relu_backward", "y", y);
  require_like("relu_backward", "dy", dy, y);
  auto dx = empty_like(y);
  kernels_on(y.where()).activation.relu_backward(dy, y, dx);
  return dx;
}

}  // namespace troupe
