#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/map_in_blocks.hpp"
#include "troupe/ops/cpu/loops/relu.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/loops/vector_math.hpp"

namespace troupe::cpu {
namespace {

// Comparisons with NaN are false, so that "x <= 0" keeps it where "x > 0" would not.
TROUPE_CLONES void relu(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] <= 0 ? 0 : x[i];
}

TROUPE_CLONES void relu_gradient(const float* dy, const float* y, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

/// Phi(x) within 2.5e-7, and within 1e-7 / |x| where it is small: the square of a rational function of |x|
/// fitted to sqrt(Phi(-|x|)), whose relative error stays small near 0.
[[gnu::always_inline]] inline float normal_distribution(float x) {
  auto size = vector_math::magnitude(x);
  auto p = vector_math::polynomial(size, 0x1.6a09e6p-1F, -0x1.bdefdap-2F, 0x1.a21d94p-4F, -0x1.61896p-7F,
                                   0x1.c6b0f4p-12F);
  auto q = vector_math::polynomial(size, 1.0F, -0x1.bc4432p-3F, 0x1.196472p-3F, -0x1.981b3ep-7F,
                                   0x1.c15598p-9F, 0x1.c5a84ep-11F, -0x1.358778p-13F, 0x1.58334p-15F);
  auto root = p / q, tail = root * root;
  tail = size > 5.7F ? 0 : tail;
  return x < 0 ? tail : 1 - tail;
}

/// The derivative of x Phi(x), minus 1/2, within 5e-7, and exactly 1/2 from 6.06 on: u times a rational
/// function of u^2.
[[gnu::always_inline]] inline float gelu_slope_above_half(float x) {
  constexpr float bound = 0x1.83db26p+2F;
  auto above = x < -bound ? -bound : x, u = x > bound ? bound : above, square = u * u;
  auto p = vector_math::polynomial(square, 0x1.988452p-1F, -0x1.90051ep-7F, 0x1.b50f7cp-7F, 0x1.9a0116p-12F,
                                   0x1.0c68f4p-15F, 0x1.79a4d6p-20F, 0x1.01d7ccp-26F, -0x1.0dcb34p-35F);
  auto q = vector_math::polynomial(square, 1.0F, 0x1.45aa54p-2F, 0x1.87009ap-5F, 0x1.2398fep-8F,
                                   0x1.2ad78p-12F, 0x1.98a7eep-17F, 0x1.dacc58p-22F);
  return u * p / q;
}

TROUPE_CLONES void gelu(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] * normal_distribution(x[i]);
}

TROUPE_CLONES void gelu_gradient(const float* dy, const float* x, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dx[i] = dy[i] * (0.5F + gelu_slope_above_half(x[i]));
}

// (1 + tanh(u)) / 2 = sigmoid(2u), with 2u = x (slope + cubic x^2).
constexpr float slope = 0x1.988454p+0F, cubic = slope * 0.044715F;

TROUPE_CLONES void gelu_tanh(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] * sigmoid_f32(x[i] * (slope + cubic * (x[i] * x[i])));
}

TROUPE_CLONES void gelu_tanh_gradient(const float* dy, const float* x, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto square = x[i] * x[i];
    square = square > 400 ? 400 : square;  // where 1 - s or s is 0 already, before the product overflows
    auto s = sigmoid_f32(x[i] * (slope + cubic * square));
    dx[i] = dy[i] * (s + x[i] * (s * (1 - s)) * (slope + 3 * cubic * square));
  }
}

TROUPE_CLONES void silu(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] * sigmoid_f32(x[i]);
}

TROUPE_CLONES void silu_gradient(const float* dy, const float* x, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto s = sigmoid_f32(x[i]);
    dx[i] = dy[i] * (s * (1 + x[i] * (1 - s)));
  }
}

TROUPE_CLONES void tanh_of(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = tanh_f32(x[i]);
}

TROUPE_CLONES void tanh_gradient(const float* dy, const float* y, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

TROUPE_CLONES void sigmoid(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = sigmoid_f32(x[i]);
}

TROUPE_CLONES void sigmoid_gradient(const float* dy, const float* y, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dx[i] = dy[i] * (y[i] * (1 - y[i]));
}

template <void (*loop)(const float*, float*, std::int64_t)>
void forward(const tensor& x, tensor& y) {
  map_in_blocks(loop, y, x);
}

template <void (*loop)(const float*, const float*, float*, std::int64_t)>
void backward(const tensor& dy, const tensor& from, tensor& dx) {
  map_in_blocks(loop, dx, dy, from);
}

}  // namespace

void relu_in_place(tensor& x) { map_in_blocks(relu, x, x); }

activation_kernels activation() {
  return {.relu_forward = forward<relu>,
          .relu_backward = backward<relu_gradient>,
          .gelu_forward = forward<gelu>,
          .gelu_backward = backward<gelu_gradient>,
          .gelu_tanh_forward = forward<gelu_tanh>,
          .gelu_tanh_backward = backward<gelu_tanh_gradient>,
          .silu_forward = forward<silu>,
          .silu_backward = backward<silu_gradient>,
          .tanh_forward = forward<tanh_of>,
          .tanh_backward = backward<tanh_gradient>,
          .sigmoid_forward = forward<sigmoid>,
          .sigmoid_backward = backward<sigmoid_gradient>};
}

}  // namespace troupe::cpu
