#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/in_blocks.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"
#include "troupe/ops/cpu/vector_math.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES void relu(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

TROUPE_CLONES void relu_gradient(const float* dy, const float* y, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) dx[i] = y[i] > 0 ? dy[i] : 0;
}

constexpr float inverse_sqrt_two_pi = 0x1.988454p-2F;

/// Phi(x) within 1e-7. log(Phi(x) / Phi(-x)) is odd and smooth: one polynomial, and Phi is its sigmoid.
[[gnu::always_inline]] inline float normal_distribution(float x) {
  auto square = x * x;
  square = square > 30.25F ? 30.25F : square;  // from |x| = 5.5 on the result is 0 or 1 within 2e-8
  auto slope = vector_math::polynomial(square, 0x1.988458p+0F, 0x1.29a696p-4F, -0x1.20dcccp-14F,
                                       -0x1.c68cfp-14F, 0x1.e7f6acp-18F, -0x1.609996p-23F, -0x1.331fcep-28F,
                                       0x1.541698p-32F, -0x1.3f234ep-38F);
  return sigmoid_f32(x * slope);
}

TROUPE_CLONES void gelu(const float* x, float* y, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] * normal_distribution(x[i]);
}

TROUPE_CLONES void gelu_gradient(const float* dy, const float* x, float* dx, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) {
    auto density = inverse_sqrt_two_pi * exp_f32(-0.5F * (x[i] * x[i]));
    dx[i] = dy[i] * (normal_distribution(x[i]) + x[i] * density);
  }
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
