#include "troupe/ops/cpu/pooling/max_pooling_2x2.hpp"

#include <array>

#include "troupe/ops/cpu/loops/vector_clones.hpp"

namespace troupe::cpu {
namespace {

/// For adjacent elements of a row: the larger of each pair, and its index 0 or 1. The second wins only if it
/// is larger or NaN.
inline __attribute__((always_inline)) void larger_of_pairs(const float* __restrict x, std::int64_t count,
                                                           float* __restrict best, float* __restrict place) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto left = x[2 * i], right = x[2 * i + 1];
    auto larger = (right > left) | (right != right);
    best[i] = larger ? right : left;
    place[i] = larger ? 1.0F : 0.0F;
  }
}

/// Combines each pair with the pair below; also between windows, where the result is not used.
inline __attribute__((always_inline)) void larger_of_rows(const float* __restrict pair,
                                                          const float* __restrict place, std::int64_t width,
                                                          std::int64_t count, float* __restrict best,
                                                          float* __restrict best_place) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto upper = pair[i], lower = pair[i + width];
    auto larger = (lower > upper) | (lower != lower);
    best[i] = larger ? lower : upper;
    best_place[i] = larger ? place[i + width] + 2.0F : place[i];
  }
}

inline __attribute__((always_inline)) void spread_pairs(const float* __restrict gradient,
                                                        const float* __restrict place, std::int64_t count,
                                                        float* __restrict dx) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto value = 0.0F + gradient[i];  // a sum, of which there is no negative zero
    dx[2 * i] = place[i] == 0.0F ? value : 0.0F;
    dx[2 * i + 1] = place[i] == 1.0F ? value : 0.0F;
  }
}

bool without_gaps(const rows_of_2x2& windows) { return windows.image_width == 2 * windows.width; }

}  // namespace

bool is_2x2(const pool2d_options& options) {
  constexpr size_2d two{2, 2}, none{0, 0};
  return options.kernel == two && options.stride == two && options.padding == none;
}

TROUPE_CLONES void max_2x2(const float* x, const rows_of_2x2& windows, float* scratch, float* best,
                           float* place) {
  auto width = windows.width, pairs = 2 * windows.rows * width;
  auto *pair = scratch, *pair_place = pair + pairs, *window = pair_place + pairs,
       *window_place = window + pairs;
  if (without_gaps(windows))
    larger_of_pairs(x, pairs, pair, pair_place);
  else
    for (std::int64_t row = 0; row < 2 * windows.rows; ++row)
      larger_of_pairs(x + row * windows.image_width, width, pair + row * width, pair_place + row * width);
  larger_of_rows(pair, pair_place, width, pairs - width, window, window_place);
  for (std::int64_t row = 0; row < windows.rows; ++row) {
    std::copy_n(window + 2 * row * width, width, best + row * width);
    std::copy_n(window_place + 2 * row * width, width, place + row * width);
  }
}

void narrow_max_2x2(const float* x, const rows_of_2x2& windows, float* best, std::uint8_t* place) {
  for (std::int64_t row = 0; row < windows.rows; ++row, x += 2 * windows.image_width)
    for (std::int64_t column = 0; column < windows.width; ++column) {
      const float *upper = x + 2 * column, *lower = upper + windows.image_width;
      const std::array<float, 4> window{upper[0], upper[1], lower[0], lower[1]};
      auto largest = window[0];
      std::uint8_t at = 0;
      for (std::uint8_t i = 1; i < 4; ++i) {
        auto value = window[i];
        auto larger = (value > largest) | (value != value);
        largest = larger ? value : largest;
        at = larger ? i : at;
      }
      *best++ = largest;
      *place++ = at;
    }
}

void narrow_gradient_2x2(const float* dy, const std::uint8_t* place, const pool2d_problem& problem,
                         std::int64_t planes, float* dx) {
  auto [height, width] = problem.in;
  const std::array<std::int64_t, 4> offset{0, 1, width, width + 1};
  constexpr std::int64_t in_first_cache = 4096;  // elements
  auto at_once = std::max<std::int64_t>(1, in_first_cache / (height * width));
  for (std::int64_t plane = 0; plane < planes; ++plane, dx += height * width) {
    if (plane % at_once == 0) std::fill_n(dx, std::min(at_once, planes - plane) * height * width, 0.0F);
    for (std::int64_t row = 0; row < problem.out.h; ++row) {
      auto* window = dx + 2 * row * width;
      // Indices are compared, not used as addresses. Adding 0 avoids negative zeros.
      for (std::int64_t column = 0; column < problem.out.w; ++column, window += 2)
        window[offset[*place++ & 3]] = 0.0F + *dy++;
    }
  }
}

TROUPE_CLONES void max_gradient_2x2(const float* dy, const float* place, const rows_of_2x2& windows,
                                    float* scratch, float* dx) {
  auto width = windows.width, pairs = 2 * windows.rows * width;
  auto *gradient = scratch, *pair_place = gradient + pairs, *lower_place = pair_place + pairs;
  for (std::int64_t i = 0; i < windows.rows * width; ++i) lower_place[i] = place[i] - 2.0F;
  for (std::int64_t row = 0; row < windows.rows; ++row) {
    auto upper = 2 * row * width, lower = upper + width, from = row * width;
    std::copy_n(dy + from, width, gradient + upper);
    std::copy_n(dy + from, width, gradient + lower);
    std::copy_n(place + from, width, pair_place + upper);
    std::copy_n(lower_place + from, width, pair_place + lower);
  }
  if (without_gaps(windows)) return spread_pairs(gradient, pair_place, pairs, dx);
  for (std::int64_t row = 0; row < 2 * windows.rows; ++row) {
    auto* line = dx + row * windows.image_width;
    spread_pairs(gradient + row * width, pair_place + row * width, width, line);
    std::fill(line + 2 * width, line + windows.image_width, 0.0F);
  }
}

}  // namespace troupe::cpu
