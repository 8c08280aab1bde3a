#include "troupe/ops/cpu/attention/attention_rows.hpp"

#include <cstring>

#include "troupe/ops/cpu/loops/vector_clones.hpp"
#include "troupe/ops/cpu/loops/vector_math.hpp"

namespace troupe::cpu {
namespace {

// Sums and maxima use 16 lanes at every vector width, combined by halving four times. Several rows are
// processed in one loop to hide the latency of dependent additions.
constexpr std::int64_t lanes = 16;
constexpr auto nothing_seen = -__builtin_inff();

template <class Combine>
[[gnu::always_inline]] inline float fold(const float* lane, const Combine& combine) {
  typedef float quarter __attribute__((vector_size(16)));
  quarter quarters[4];
  std::memcpy(quarters, lane, sizeof quarters);
  auto all = combine(combine(quarters[0], quarters[2]), combine(quarters[1], quarters[3]));
  return combine(combine(all[0], all[2]), combine(all[1], all[3]));
}

constexpr auto plus = [](auto a, auto b) { return a + b; };
constexpr auto larger = [](auto a, auto b) { return a > b ? a : b; };

[[gnu::always_inline]] inline float maximum(const float* row, std::int64_t size) {
  alignas(64) float lane[lanes];
  for (auto& each : lane) each = nothing_seen;
  for (std::int64_t first = 0; first < size; first += lanes)
    for (std::int64_t i = 0; i < lanes; ++i) {
      // NOLINTNEXTLINE(bugprone-narrowing-conversions): clang-tidy takes a constant infinity for a double
      auto seen = first + i < size ? row[first + i] : nothing_seen;
      lane[i] = larger(seen, lane[i]);
    }
  return fold(lane, larger);
}

/// Writes 0 to elements [size, most).
[[gnu::always_inline]] inline float exponentials(float* row, std::int64_t size, std::int64_t most,
                                                 float scale, float largest) {
  alignas(64) float lane[lanes] = {};
  for (std::int64_t first = 0; first < most; first += lanes)
    for (std::int64_t i = 0; i < lanes; ++i) {
      auto e = exp_f32(row[first + i] * scale - largest);
      e = first + i < size ? e : 0;
      row[first + i] = e;
      lane[i] += e;
    }
  return fold(lane, plus);
}

}  // namespace

TROUPE_CLONES void continue_softmax(const score_rows& rows, float* products, float scale,
                                    const running_softmax& softmax, float* factors) {
  for (std::int64_t row = 0; row < rows.count; ++row)
    factors[row] = scale * maximum(products + row * rows.stride, rows.num_seen(row));
  for (std::int64_t row = 0; row < rows.count; ++row) {
    auto largest = larger(factors[row], softmax.largest[row]);
    factors[row] = exp_f32(softmax.largest[row] - largest);
    softmax.largest[row] = largest;
  }
  for (std::int64_t row = 0; row < rows.count; ++row)
    softmax.sum[row] =
        softmax.sum[row] * factors[row] + exponentials(products + row * rows.stride, rows.num_seen(row),
                                                       rows.max_seen, scale, softmax.largest[row]);
}

TROUPE_CLONES void log_sum_exp_of(const running_softmax& softmax, std::int64_t count, float* result) {
  for (std::int64_t row = 0; row < count; ++row)
    result[row] = softmax.largest[row] + log_f32(softmax.sum[row]);
}

TROUPE_CLONES void scale_row(const float* from, float factor, float* to, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] = from[i] * factor;
}

TROUPE_CLONES void dot_rows(const float* a, std::int64_t a_stride, const float* b, std::int64_t b_stride,
                            std::int64_t count, std::int64_t size, float* result) {
  for (std::int64_t row = 0; row < count; ++row, a += a_stride, b += b_stride) {
    alignas(64) float lane[lanes] = {};
    std::int64_t first = 0;
    for (; first + lanes <= size; first += lanes)
      for (std::int64_t i = 0; i < lanes; ++i) lane[i] += a[first + i] * b[first + i];
    for (std::int64_t i = 0; first + i < size; ++i) lane[i] += a[first + i] * b[first + i];
    result[row] = fold(lane, plus);
  }
}

TROUPE_CLONES void softmax_gradient(const score_rows& rows, float* __restrict products,
                                    float* __restrict gradients, float scale, const float* log_sum_exp,
                                    const float* delta) {
  for (std::int64_t row = 0; row < rows.count; ++row, products += rows.stride, gradients += rows.stride) {
    auto seen = rows.num_seen(row);
    for (std::int64_t first = 0; first < rows.max_seen; first += lanes)
      for (std::int64_t i = 0; i < lanes; ++i) {
        auto p = exp_f32(products[first + i] * scale - log_sum_exp[row]);
        auto gradient = p * (gradients[first + i] - delta[row]) * scale;
        products[first + i] = first + i < seen ? p : 0;
        gradients[first + i] = first + i < seen ? gradient : 0;
      }
  }
}

}  // namespace troupe::cpu
