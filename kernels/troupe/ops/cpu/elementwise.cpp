#include "troupe/ops/elementwise.hpp"

#include "troupe/ops/arguments.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"

namespace troupe {
namespace {

TROUPE_CLONES void add_multiple(float alpha, const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] += alpha * x[i];
}

TROUPE_CLONES void sum(const float* a, const float* b, float* c, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) c[i] = a[i] + b[i];
}

TROUPE_CLONES void multiply(float* x, float factor, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) x[i] *= factor;
}

}  // namespace

void axpy(float alpha, const tensor& x, tensor y) {
  require_argument("axpy", "y", y, dtype::f32, y.extents());
  require_argument("axpy", "x", x, dtype::f32, y.extents());
  add_multiple(alpha, x.values<float>().data(), y.values<float>().data(), y.num_elements());
}

tensor add(const tensor& a, const tensor& b) {
  require_argument("add", "a", a, dtype::f32, a.extents());
  require_argument("add", "b", b, dtype::f32, a.extents());
  auto c = tensor::empty(a.extents());
  sum(a.values<float>().data(), b.values<float>().data(), c.values<float>().data(), c.num_elements());
  return c;
}

void scale(tensor x, float factor) {
  require_argument("scale", "x", x, dtype::f32, x.extents());
  multiply(x.values<float>().data(), factor, x.num_elements());
}

}  // namespace troupe
