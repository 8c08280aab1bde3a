#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

namespace troupe::cpu {

// Reductions of a row with a fixed structure, so that every vector width gives the same bits. Element i goes
// to lane i % 64, those after the last multiple of 64 to lane i % 16, those after the last multiple of 16 to
// one of their own. The lanes are combined in a tree. Call only from functions with TROUPE_CLONES.

using four_lanes = float __attribute__((vector_size(16)));

/// The lanes. Four vectors hide the latency of dependent additions.
struct lane_block {
  static constexpr std::int64_t width = 16, vectors = 4, size = width * vectors;
  float lane[vectors][width];
  float rest;  ///< separate, to avoid store forwarding stalls between scalar and vector accesses
};

/// Combines the lanes with op(lane, term(i)) for i in [0, size). `op` is for floats and for four_lanes.
template <class Op, class Term>
[[gnu::always_inline]] inline void combine_in_lanes(lane_block& lanes, std::int64_t size, const Op& op,
                                                    const Term& term) {
  constexpr auto width = lane_block::width, vectors = lane_block::vectors;
  auto& lane = lanes.lane;
  std::int64_t i = 0;
  for (; i + lane_block::size <= size; i += lane_block::size)
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < vectors; ++v)
#pragma GCC unroll 1  // as a loop it becomes one vector operation, whatever `op` is
      for (std::int64_t l = 0; l < width; ++l) lane[v][l] = op(lane[v][l], term(i + v * width + l));
  for (; i + width <= size; i += width)
#pragma GCC unroll 1
    for (std::int64_t l = 0; l < width; ++l) lane[0][l] = op(lane[0][l], term(i + l));
  for (; i < size; ++i) lanes.rest = op(lanes.rest, term(i));
}

/// The lanes in a tree, which is in registers from sixteen lanes on: i with i + 8, with i + 4, and so on.
template <class Op>
[[gnu::always_inline]] inline float fold_lanes(lane_block& lanes, const Op& op) {
  auto& lane = lanes.lane;
#pragma GCC unroll 1
  for (std::int64_t l = 0; l < lane_block::width; ++l)
    lane[0][l] = op(op(lane[0][l], lane[2][l]), op(lane[1][l], lane[3][l]));
  four_lanes quarter[4];
  std::memcpy(quarter, lane[0], sizeof quarter);
  auto all = op(op(quarter[0], quarter[2]), op(quarter[1], quarter[3]));
  return op(op(op(all[0], all[2]), op(all[1], all[3])), lanes.rest);
}

/// `first` combined with term(i) for i in [0, size).
template <class Op, class Term>
[[gnu::always_inline]] inline float reduce_lanes(std::int64_t size, float first, const Op& op,
                                                 const Term& term) {
  lane_block lanes;
#pragma GCC unroll 4
  for (auto& vector : lanes.lane)
    for (auto& each : vector) each = first;
  lanes.rest = first;
  combine_in_lanes(lanes, size, op, term);
  return fold_lanes(lanes, op);
}

constexpr auto plus = [](auto a, auto b) { return a + b; };

/// Number of terms that are added in f32; their sums are added in f64.
constexpr std::int64_t lane_sum_elements = 4096;

/// The sum of term(i) for i in [0, size).
template <class Term>
[[gnu::always_inline]] inline double sum_in_lanes(std::int64_t size, const Term& term) {
  double sum = 0;
  for (std::int64_t first = 0; first < size; first += lane_sum_elements)
    sum += reduce_lanes(std::min(lane_sum_elements, size - first), 0.0F, plus,
                        [&](std::int64_t i) { return term(first + i); });
  return sum;
}

/// The largest x[i] that is not NaN; -infinity if there is none.
[[gnu::always_inline]] inline float largest_number(const float* x, std::int64_t size) {
  return reduce_lanes(
      size, -__builtin_inff(), [](auto a, auto b) { return b > a ? b : a; },
      [&](std::int64_t i) { return x[i]; });
}

}  // namespace troupe::cpu
