#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "troupe/ops/cpu/product/product_loops.hpp"
#include "troupe/ops/cpu/product/tile.hpp"

// Tiles whose rows of A lie anywhere in memory. Included by one source for each instruction set.

namespace troupe::cpu {
namespace {

/// Rows of a tile: so many that their addresses are in registers.
constexpr int gathered_rows = 6;

template <class V, int Rows, int Vectors>
void multiply_gathered_tile(const gathered_block& block, std::int64_t first_row, const float* b,
                            const block_target& to) {
  prefetch_rows<Rows>(to);
  tile_sums<V, Rows, Vectors> tile;
  for (const auto& run : block.runs) {
    const float* rows[Rows];
#pragma GCC unroll 6
    for (int row = 0; row < Rows; ++row)
      rows[row] = block.rows[static_cast<std::size_t>(first_row + row)] + run.first;
    for (std::int64_t i = 0; i < run.size; ++i)
      tile.add(b + i * panel_columns_of<V>, [&](int row) { return rows[row] + i; });
    b += run.size * panel_columns_of<V>;
  }
  tile.finish_all(to);
}

using gathered_function = void (*)(const gathered_block& block, std::int64_t first_row, const float* b,
                                   const block_target& to);

/// multiply_gathered_tile for Rows from 1 on, by Rows - 1.
template <class V, int Vectors>
constexpr auto gathered_tiles = []<int... Row>(std::integer_sequence<int, Row...>) {
  return std::array<gathered_function, sizeof...(Row)>{multiply_gathered_tile<V, Row + 1, Vectors>...};
}
(std::make_integer_sequence<int, std::min(gathered_rows, V::max_rows)>{});

template <class V>
void multiply_gathered(const gathered_block& block, const block_target& to) {
  const auto num_rows = static_cast<std::int64_t>(block.rows.size());
  const even_panels panels(num_rows, std::ssize(gathered_tiles<V, 1>));
  const auto* b = block.b;
  for (std::int64_t column = 0; column < block.columns; column += panel_columns_of<V>) {
    auto columns = std::min(block.columns - column, panel_columns_of<V>);
    const auto& functions = columns > V::width ? gathered_tiles<V, tile_vectors> : gathered_tiles<V, 1>;
    std::int64_t row = 0;
    for (std::int64_t panel = 0; panel < panels.count; ++panel) {
      auto rows = panels.lanes_of(panel);
      auto run = [&](const block_target& target) {
        functions[static_cast<std::size_t>(rows - 1)](block, row, b, target);
      };
      if (fills_vectors<V>(columns))
        run(to.from(row, column));
      else
        at_edge<V>(to.from(row, column), rows, columns, run);
      row += rows;
    }
    b += panel_columns_of<V> * block.inner + panel_gap;
  }
}

}  // namespace
}  // namespace troupe::cpu
