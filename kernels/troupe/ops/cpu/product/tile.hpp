#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "troupe/ops/cpu/product/product_loops.hpp"

// The loops over packed panels: Goto, van de Geijn, "Anatomy of high-performance matrix multiplication",
// 2008, with the macro- and micro-kernel of Van Zee, van de Geijn, "BLIS: a framework for rapidly
// instantiating BLAS functionality", 2015. Included by one source for each instruction set, whose vector is
// V:
//
//   V::width, V::max_rows      floats in a vector, rows of the largest tile
//   V::load, V::store, V::broadcast, V::zero
//   V::fused(a, b, sum)        a b + sum with one rounding
//   V::sum(a, b), V::relu(x)   x <= 0 ? 0 : x

namespace troupe::cpu {
namespace {

/// Vectors in a row of the largest tile.
constexpr int tile_vectors = 2;

template <class V>
constexpr std::int64_t panel_columns_of = std::int64_t{tile_vectors} * V::width;

/// The vector of C in this row and from this column on, given its sums.
template <class V>
[[gnu::always_inline]] inline void finish(V sums, const block_target& to, std::int64_t row,
                                          std::int64_t column) {
  auto* c = to.c + row * to.stride + column;
  if (to.accumulate) sums = V::sum(V::load(c), sums);
  if (to.column_bias) sums = V::sum(sums, V::load(to.column_bias + column));
  if (to.row_bias) sums = V::sum(sums, V::broadcast(to.row_bias + row));
  if (to.relu) sums = V::relu(sums);
  V::store(sums, c);
}

/// The sums of a tile of C.
template <class V, int Rows, int Vectors>
struct tile_sums {
  V sums[Rows][Vectors];

  [[gnu::always_inline]] tile_sums() {
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sums[row][v] = V::zero();
  }
  /// Adds one element of each row, factor(row), times a line of a panel of B.
  template <class Factor>
  [[gnu::always_inline]] void add(const float* b, const Factor& factor) {
    V terms[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) terms[v] = V::load(b + v * V::width);
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row) {
      auto broadcast = V::broadcast(factor(row));
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sums[row][v] = V::fused(broadcast, terms[v], sums[row][v]);
    }
  }
  [[gnu::always_inline]] void finish_all(const block_target& to) const {
#pragma GCC unroll 16
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) finish(sums[row][v], to, row, v * V::width);
  }
};

template <int Rows>
[[gnu::always_inline]] inline void prefetch_rows(const block_target& to) {
#pragma GCC unroll 16
  for (int row = 0; row < Rows; ++row) __builtin_prefetch(to.c + row * to.stride, 1);
}

/// [Rows, Vectors * width] of C. a: [inner, Rows], b: [inner, panel_columns].
template <class V, int Rows, int Vectors>
void multiply_tile(const float* a, const float* b, std::int64_t inner, const block_target& to) {
  prefetch_rows<Rows>(to);
  tile_sums<V, Rows, Vectors> tile;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < inner; ++k)
    tile.add(b + k * panel_columns_of<V>, [&](int row) { return a + k * Rows + row; });
  tile.finish_all(to);
}

using tile_function = void (*)(const float* a, const float* b, std::int64_t inner, const block_target& to);

/// multiply_tile for Rows from 1 on, by Rows - 1.
template <class V, int Vectors>
constexpr auto tiles = []<int... Row>(std::integer_sequence<int, Row...>) {
  return std::array<tile_function, sizeof...(Row)>{multiply_tile<V, Row + 1, Vectors>...};
}
(std::make_integer_sequence<int, V::max_rows>{});

/// The lanes of a block as panels of at most `most` lanes: as few as possible, of sizes that differ by at
/// most one, so that no tile is much smaller than the others.
struct even_panels {
  std::int64_t count, size, num_larger;

  even_panels(std::int64_t lanes, std::int64_t most)
      : count((lanes + most - 1) / most), size(lanes / count), num_larger(lanes % count) {}
  std::int64_t lanes_of(std::int64_t panel) const { return size + (panel < num_larger ? 1 : 0); }
};

/// Calls `multiply(target)` for a tile of C that has fewer columns than its vectors have lanes, and keeps
/// what is beside it.
template <class V, class Multiply>
void at_edge(const block_target& to, std::int64_t rows, std::int64_t columns, const Multiply& multiply) {
  constexpr auto width = panel_columns_of<V>;
  alignas(64) float c[V::max_rows * width] = {}, bias[width] = {};
  auto edge = to;
  edge.c = c;
  edge.stride = width;
  if (to.column_bias) {
    std::memcpy(bias, to.column_bias, static_cast<std::size_t>(columns) * sizeof(float));
    edge.column_bias = bias;
  }
  auto row_bytes = static_cast<std::size_t>(columns) * sizeof(float);
  for (std::int64_t row = 0; row < rows; ++row)
    if (to.accumulate) std::memcpy(c + row * width, to.c + row * to.stride, row_bytes);
  multiply(edge);
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(to.c + row * to.stride, c + row * width, row_bytes);
}

template <class V>
constexpr bool fills_vectors(std::int64_t columns) {
  return columns == V::width || columns == panel_columns_of<V>;
}

/// All panels of A with one panel of B, which stays in the L1 cache.
template <class V>
void multiply_panel(const packed_block& block, const block_target& to) {
  const auto& functions = block.columns > V::width ? tiles<V, tile_vectors> : tiles<V, 1>;
  const even_panels panels(block.rows, V::max_rows);
  const auto* a = block.a;
  std::int64_t row = 0;
  for (std::int64_t panel = 0; panel < panels.count; ++panel) {
    auto rows = panels.lanes_of(panel);
    auto run = [&](const block_target& target) {
      functions[static_cast<std::size_t>(rows - 1)](a, block.b, block.inner, target);
    };
    if (fills_vectors<V>(block.columns))
      run(to.from(row, 0));
    else
      at_edge<V>(to.from(row, 0), rows, block.columns, run);
    a += rows * block.inner + panel_gap;
    row += rows;
  }
}

template <class V>
void multiply_packed(const packed_block& block, const block_target& to) {
  auto panel = block;
  for (std::int64_t column = 0; column < block.columns; column += panel_columns_of<V>) {
    panel.columns = std::min(block.columns - column, panel_columns_of<V>);
    multiply_panel<V>(panel, to.from(0, column));
    panel.b += panel_columns_of<V> * block.inner + panel_gap;
  }
}

}  // namespace
}  // namespace troupe::cpu
