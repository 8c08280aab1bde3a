#include "troupe/ops/cpu/families.hpp"
#include "troupe/ops/cpu/lanes.hpp"
#include "troupe/ops/cpu/rows.hpp"
#include "troupe/ops/cpu/vector_clones.hpp"
#include "troupe/ops/cpu/vector_math.hpp"

namespace troupe::cpu {
namespace {

TROUPE_CLONES void softmax(const float* x, float* y, std::int64_t size) {
  auto largest = max_in_lanes(size, [&](std::int64_t i) { return x[i]; });
  for (std::int64_t i = 0; i < size; ++i) y[i] = exp_f32(x[i] - largest);
  auto factor = static_cast<float>(1 / sum_in_lanes(size, [&](std::int64_t i) { return y[i]; }));
  for (std::int64_t i = 0; i < size; ++i) y[i] *= factor;
}

TROUPE_CLONES void log_softmax(const float* x, float* y, std::int64_t size) {
  auto largest = max_in_lanes(size, [&](std::int64_t i) { return x[i]; });
  auto sum = sum_in_lanes(size, [&](std::int64_t i) { return exp_f32(x[i] - largest); });
  auto log_sum = log_f32(static_cast<float>(sum));
  for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] - largest - log_sum;
}

TROUPE_CLONES void softmax_gradient(const float* dy, const float* y, float* dx, std::int64_t size) {
  auto product = static_cast<float>(sum_in_lanes(size, [&](std::int64_t i) { return dy[i] * y[i]; }));
  for (std::int64_t i = 0; i < size; ++i) dx[i] = y[i] * (dy[i] - product);
}

TROUPE_CLONES void log_softmax_gradient(const float* dy, const float* y, float* dx, std::int64_t size) {
  auto sum = static_cast<float>(sum_in_lanes(size, [&](std::int64_t i) { return dy[i]; }));
  for (std::int64_t i = 0; i < size; ++i) dx[i] = dy[i] - exp_f32(y[i]) * sum;
}

template <void (*of_row)(const float*, float*, std::int64_t)>
void forward(const tensor& x, tensor& y) {
  for_each_row(x, [&](std::int64_t row) {
    const auto* from = read_row(x, row, 0);
    write_row(y, row, 1, [&](float* to) { of_row(from, to, row_size(x)); });
  });
}

template <void (*of_row)(const float*, const float*, float*, std::int64_t)>
void backward(const tensor& dy, const tensor& y, tensor& dx) {
  for_each_row(y, [&](std::int64_t row) {
    const auto *dy_row = read_row(dy, row, 0), *y_row = read_row(y, row, 1);
    write_row(dx, row, 2, [&](float* to) { of_row(dy_row, y_row, to, row_size(y)); });
  });
}

}  // namespace

softmax_kernels softmax() {
  return {.softmax_forward = forward<softmax>,
          .softmax_backward = backward<softmax_gradient>,
          .log_softmax_forward = forward<log_softmax>,
          .log_softmax_backward = backward<log_softmax_gradient>};
}

}  // namespace troupe::cpu
