#include "troupe/ops/activation.hpp"

#include "troupe/ops/arguments.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe {
namespace {

TROUPE_CLONES void relu(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

TROUPE_CLONES void relu_gradient(const float* dy, const float* y, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

}  // namespace

tensor relu_forward(const tensor& x) {
  require_argument("relu", "x", x, dtype::f32, x.extents());
  auto y = tensor::empty(x.extents());
  relu(x.values<float>().data(), y.values<float>().data(), x.num_elements());
  return y;
}

tensor relu_backward(const tensor& dy, const tensor& y) {
  require_argument("relu_backward", "y", y, dtype::f32, y.extents());
  require_argument("relu_backward", "dy", dy, dtype::f32, y.extents());
  auto dx = tensor::empty(y.extents());
  relu_gradient(dy.values<float>().data(), y.values<float>().data(), dx.values<float>().data(),
                y.num_elements());
  return dx;
}

}  // namespace troupe
