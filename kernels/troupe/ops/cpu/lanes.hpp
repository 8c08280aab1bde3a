#pragma once
#include <algorithm>
#include <array>
#include <cstdint>

namespace troupe::cpu {

// Reductions of a row with a fixed structure, so that every vector width gives the same bits: element i goes
// to lane i % 16, and the lanes are combined in a tree. To be called from functions with TROUPE_CLONES.

constexpr std::int64_t num_lanes = 16;
using lanes = std::array<float, num_lanes>;

/// Combines `first` with op(lane, term(i)) for i in [0, size), then the lanes.
template <class Op, class Term>
[[gnu::always_inline]] inline float reduce_lanes(std::int64_t size, float first, const Op& op,
                                                 const Term& term) {
  float lane[num_lanes];
  for (std::int64_t l = 0; l < num_lanes; ++l) lane[l] = first;
  auto whole = size / num_lanes * num_lanes;
  for (std::int64_t i = 0; i < whole; i += num_lanes)
#pragma GCC unroll 1  // as a loop it becomes one vector operation, whatever `op` is
    for (std::int64_t l = 0; l < num_lanes; ++l) lane[l] = op(lane[l], term(i + l));
  for (auto i = whole; i < size; ++i) lane[i - whole] = op(lane[i - whole], term(i));
  for (auto width = num_lanes / 2; width > 0; width /= 2)
    for (std::int64_t l = 0; l < width; ++l) lane[l] = op(lane[l], lane[l + width]);
  return lane[0];
}

/// Terms that are added in f32; sums of so many are added in f64.
constexpr std::int64_t lane_sum_elements = 4096;

/// The sum of term(i) for i in [0, size).
template <class Term>
[[gnu::always_inline]] inline double sum_in_lanes(std::int64_t size, const Term& term) {
  double sum = 0;
  for (std::int64_t first = 0; first < size; first += lane_sum_elements)
    sum += reduce_lanes(
        std::min(lane_sum_elements, size - first), 0.0F, [](float a, float b) { return a + b; },
        [&](std::int64_t i) { return term(first + i); });
  return sum;
}

/// The largest term(i), or NaN if one is NaN; -infinity of none.
template <class Term>
[[gnu::always_inline]] inline float max_in_lanes(std::int64_t size, const Term& term) {
  return reduce_lanes(
      size, -__builtin_inff(), [](float a, float b) { return static_cast<bool>((b > a) | (b != b)) ? b : a; },
      term);
}

}  // namespace troupe::cpu
