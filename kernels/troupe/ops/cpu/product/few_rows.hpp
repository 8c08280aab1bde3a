#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "troupe/ops/cpu/product/product_loops.hpp"
#include "troupe/ops/cpu/product/tile.hpp"

// Products of few rows of A read B where it lies. Included by one source for each instruction set;
// besides what the other files list, V has
//
//   V::eight                   a vector of 8 floats
//   V::single                  one float
//   V::eight::load_transposed(from, step, to)
//                              to[k] = the 8 elements from[lane step + k], for k < 8

namespace troupe::cpu {
namespace {

/// Rows of A that are multiplied with what has been loaded of B, and with what has been loaded and
/// transposed.
constexpr int rows_at_once = 4, rows_of_transposed = 8;

/// Columns that fill no vector, one by one.
template <class V>
void multiply_elements(const strided_block& a, const strided_block& b, const block_target& to) {
  using one = typename V::single;
  for (std::int64_t row = 0; row < a.lanes; ++row)
    for (std::int64_t column = 0; column < b.lanes; ++column) {
      auto chain = one::zero();
      for (std::int64_t k = 0; k < a.inner; ++k)
        chain = one::fused(one::load(a.elements + row * a.lane_step + k * a.inner_step),
                           one::load(b.elements + column * b.lane_step + k * b.inner_step), chain);
      auto& c = to.c[row * to.stride + column];
      float sum;
      one::store(chain, &sum);
      if (to.accumulate) sum = c + sum;
      if (to.column_bias) sum += to.column_bias[column];
      if (to.row_bias) sum += to.row_bias[row];
      c = to.relu && sum <= 0 ? 0 : sum;
    }
}

/// 8 columns of B whose elements follow each other along the inner axis: squares of 8 by 8 are transposed in
/// registers.
template <class V, int Rows>
void multiply_8_columns(const strided_block& a, const strided_block& b, const block_target& to) {
  using half = typename V::eight;
  half sums[Rows];
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row) sums[row] = half::zero();
  std::int64_t k = 0;
  for (; k + 8 <= b.inner; k += 8) {
    half terms[8];
    half::load_transposed(b.elements + k, b.lane_step, terms);
#pragma GCC unroll 8
    for (int step = 0; step < 8; ++step)
#pragma GCC unroll 8
      for (int row = 0; row < Rows; ++row)
        sums[row] = half::fused(half::broadcast(a.elements + row * a.lane_step + (k + step) * a.inner_step),
                                terms[step], sums[row]);
  }
  for (; k < b.inner; ++k) {
    float gathered[8];
    for (int lane = 0; lane < 8; ++lane) gathered[lane] = b.elements[lane * b.lane_step + k];
    auto terms = half::load(gathered);
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row)
      sums[row] =
          half::fused(half::broadcast(a.elements + row * a.lane_step + k * a.inner_step), terms, sums[row]);
  }
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row) finish(sums[row], to, row, 0);
}

/// Columns whose sums are computed at once, in the L1 cache.
constexpr std::int64_t most_line_columns = 1024;

/// At most most_line_columns columns, in whole vectors, that follow each other in memory: their sums stay in
/// the cache, and a few lines of B are added in one pass.
template <class V, int Rows>
void multiply_lines(const strided_block& a, const strided_block& b, const block_target& to) {
  constexpr std::int64_t lines = 4;
  alignas(64) float sums[Rows][most_line_columns];
  const auto columns = b.lanes;
  for (auto& row : sums)
    for (std::int64_t column = 0; column < columns; column += V::width) V::store(V::zero(), row + column);
  std::int64_t k = 0;
  for (; k + lines <= b.inner; k += lines) {
    V factors[Rows][lines];
    const auto* line = b.elements + k * b.inner_step;
#pragma GCC unroll 4
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
      for (std::int64_t step = 0; step < lines; ++step)
        factors[row][step] = V::broadcast(a.elements + row * a.lane_step + (k + step) * a.inner_step);
    for (std::int64_t column = 0; column < columns; column += V::width) {
      V terms[lines];
#pragma GCC unroll 4
      for (std::int64_t step = 0; step < lines; ++step)
        terms[step] = V::load(line + step * b.inner_step + column);
#pragma GCC unroll 4
      for (int row = 0; row < Rows; ++row) {
        auto sum = V::load(sums[row] + column);
#pragma GCC unroll 4
        for (std::int64_t step = 0; step < lines; ++step)
          sum = V::fused(factors[row][step], terms[step], sum);
        V::store(sum, sums[row] + column);
      }
    }
  }
  for (; k < b.inner; ++k)
    for (int row = 0; row < Rows; ++row) {
      auto factor = V::broadcast(a.elements + row * a.lane_step + k * a.inner_step);
      for (std::int64_t column = 0; column < columns; column += V::width)
        V::store(
            V::fused(factor, V::load(b.elements + k * b.inner_step + column), V::load(sums[row] + column)),
            sums[row] + column);
    }
  for (int row = 0; row < Rows; ++row)
    for (std::int64_t column = 0; column < columns; column += V::width)
      finish(V::load(sums[row] + column), to, row, column);
}

inline strided_block lanes_from(const strided_block& block, std::int64_t first, std::int64_t lanes) {
  auto part = block;
  part.elements += first * block.lane_step;
  part.lanes = lanes;
  return part;
}

/// All columns, `Rows` rows.
template <class V, int Rows>
void multiply_rows(const strided_block& a, const strided_block& b, const block_target& to) {
  std::int64_t column = 0;
  if (b.inner_step == 1)
    for (; column + 8 <= b.lanes; column += 8)
      multiply_8_columns<V, Rows>(a, lanes_from(b, column, 8), to.from(0, column));
  else if constexpr (Rows <= rows_at_once)
    while (column + V::width <= b.lanes) {
      auto columns = std::min(most_line_columns, (b.lanes - column) / V::width * V::width);
      multiply_lines<V, Rows>(a, lanes_from(b, column, columns), to.from(0, column));
      column += columns;
    }
  if (column < b.lanes) multiply_elements<V>(a, lanes_from(b, column, b.lanes - column), to.from(0, column));
}

using rows_function = void (*)(const strided_block& a, const strided_block& b, const block_target& to);

/// multiply_rows for Rows from 1 on, by Rows - 1.
template <class V>
constexpr auto row_products = []<int... Rows>(std::integer_sequence<int, Rows...>) {
  return std::array<rows_function, sizeof...(Rows)>{multiply_rows<V, Rows + 1>...};
}
(std::make_integer_sequence<int, rows_of_transposed>{});

template <class V>
void multiply_few_rows(const strided_block& a, const strided_block& b, const block_target& to) {
  const std::int64_t at_once = b.inner_step == 1 ? rows_of_transposed : rows_at_once;
  for (std::int64_t row = 0; row < a.lanes; row += at_once) {
    auto rows = std::min(a.lanes - row, at_once);
    row_products<V>[static_cast<std::size_t>(rows - 1)](lanes_from(a, row, rows), b, to.from(row, 0));
  }
}

}  // namespace
}  // namespace troupe::cpu
