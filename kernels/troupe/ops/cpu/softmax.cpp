#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/lanes.hpp"
#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/loops/vector_math.hpp"
#include "troupe/ops/cpu/rows.hpp"

namespace troupe::cpu {
namespace {

// A NaN is ignored in the maximum, but makes the sum NaN, and so the whole row.

TROUPE_CLONES void softmax(const float* __restrict x, float* __restrict y, std::int64_t rows,
                           std::int64_t size) {
  for (; rows > 0; --rows, x += size, y += size) {
    auto largest = largest_number(x, size);
    double sum = 0;
    for (std::int64_t first = 0; first < size; first += lane_sum_elements) {
      auto last = std::min(first + lane_sum_elements, size);
      for (auto i = first; i < last; ++i) y[i] = exp_f32(x[i] - largest);
      sum += sum_in_lanes(last - first, [&](std::int64_t i) { return y[first + i]; });
    }
    auto factor = static_cast<float>(1 / sum);
    for (std::int64_t i = 0; i < size; ++i) y[i] *= factor;
  }
}

TROUPE_CLONES void log_softmax(const float* __restrict x, float* __restrict y, std::int64_t rows,
                               std::int64_t size) {
  for (; rows > 0; --rows, x += size, y += size) {
    auto largest = largest_number(x, size);
    auto sum = sum_in_lanes(size, [&](std::int64_t i) { return exp_f32(x[i] - largest); });
    auto log_sum = log_f32(static_cast<float>(sum));
    for (std::int64_t i = 0; i < size; ++i) y[i] = x[i] - largest - log_sum;
  }
}

TROUPE_CLONES void softmax_gradient(const float* __restrict dy, const float* __restrict y,
                                    float* __restrict dx, std::int64_t rows, std::int64_t size) {
  for (; rows > 0; --rows, dy += size, y += size, dx += size) {
    auto product = static_cast<float>(sum_in_lanes(size, [&](std::int64_t i) { return dy[i] * y[i]; }));
    for (std::int64_t i = 0; i < size; ++i) dx[i] = y[i] * (dy[i] - product);
  }
}

TROUPE_CLONES void log_softmax_gradient(const float* __restrict dy, const float* __restrict y,
                                        float* __restrict dx, std::int64_t rows, std::int64_t size) {
  for (; rows > 0; --rows, dy += size, y += size, dx += size) {
    auto sum = static_cast<float>(sum_in_lanes(size, [&](std::int64_t i) { return dy[i]; }));
    for (std::int64_t i = 0; i < size; ++i) dx[i] = dy[i] - exp_f32(y[i]) * sum;
  }
}

template <void (*of_rows)(const float*, float*, std::int64_t, std::int64_t)>
void forward(const tensor& x, tensor& y) {
  for_each_rows(x, [&](std::int64_t first, std::int64_t count) {
    const auto* from = read_rows(x, first, count, 0);
    write_rows(y, first, count, 1, [&](float* to) { of_rows(from, to, count, row_size(x)); });
  });
}

template <void (*of_rows)(const float*, const float*, float*, std::int64_t, std::int64_t)>
void backward(const tensor& dy, const tensor& y, tensor& dx) {
  for_each_rows(y, [&](std::int64_t first, std::int64_t count) {
    const auto *dy_rows = read_rows(dy, first, count, 0), *y_rows = read_rows(y, first, count, 1);
    write_rows(dx, first, count, 2, [&](float* to) { of_rows(dy_rows, y_rows, to, count, row_size(y)); });
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
