#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "troupe/ops/cpu/product/product_loops.hpp"
#include "troupe/ops/cpu/product/tile.hpp"

// Copies blocks of operands into panels [inner, lanes]. Included by one source for each instruction set;
// besides what tile.hpp lists, V has
//
//   V::transpose(from, step, lanes, to, to_step)
//                              to[k to_step + lane] = from[lane step + k] for k < 8 and lane < 8, zeros from
//                              `lanes` on

namespace troupe::cpu {
namespace {

/// A panel of `width` lanes, of which `from` has the first, whose elements follow each other along the inner
/// axis. Squares of 8 lanes are stored from the last lanes to the first, since those that reach beyond the
/// panel's width write over the next elements of its first lanes.
template <class V>
void pack_by_transposition(const strided_block& from, std::int64_t width, float* to) {
  constexpr std::int64_t side = 8;
  auto whole = from.inner / side * side;
  for (std::int64_t k = 0; k < whole; k += side)
    for (auto lane = (width - 1) / side * side; lane >= 0; lane -= side) {
      auto present = from.lanes - lane;
      V::transpose(from.elements + (present > 0 ? lane : 0) * from.lane_step + k, from.lane_step,
                   present < 0      ? 0
                   : present > side ? side
                                    : present,
                   to + k * width + lane, width);
    }
  for (auto k = whole; k < from.inner; ++k)
    for (std::int64_t lane = 0; lane < width; ++lane)
      to[k * width + lane] = lane < from.lanes ? from.elements[lane * from.lane_step + k] : 0;
}

/// `inner` lines of Width elements.
template <int Width>
void copy_lines(const float* from, std::int64_t step, std::int64_t inner, float* to) {
  for (std::int64_t k = 0; k < inner; ++k)
    std::memcpy(to + k * Width, from + k * step, Width * sizeof(float));
}

using line_function = void (*)(const float* from, std::int64_t step, std::int64_t inner, float* to);

/// copy_lines for Width from 1 on, by Width - 1.
template <class V>
constexpr auto line_copies = []<int... Width>(std::integer_sequence<int, Width...>) {
  return std::array<line_function, sizeof...(Width)>{copy_lines<Width + 1>...};
}
(std::make_integer_sequence<int, V::max_rows>{});

/// Lines that are copied at once into one panel. Rows of a matrix that lie 4 KiB apart share one set of the
/// cache: more of them would displace each other before all panels have been filled.
constexpr std::int64_t lines_at_once = 4;

template <class V>
void pack_rows(const strided_block& from, float* to) {
  const even_panels panels(from.lanes, V::max_rows);
  if (from.inner_step == 1) {
    auto rows = from;
    for (std::int64_t panel = 0; panel < panels.count; ++panel) {
      rows.lanes = panels.lanes_of(panel);
      pack_by_transposition<V>(rows, rows.lanes, to);
      rows.elements += rows.lanes * from.lane_step;
      to += rows.lanes * from.inner + panel_gap;
    }
    return;
  }
  for (std::int64_t k = 0; k < from.inner; k += lines_at_once) {
    auto lines = from.inner - k < lines_at_once ? from.inner - k : lines_at_once;
    const auto* lane = from.elements + k * from.inner_step;
    auto* place = to;
    for (std::int64_t panel = 0; panel < panels.count; ++panel) {
      auto size = panels.lanes_of(panel);
      line_copies<V>[static_cast<std::size_t>(size - 1)](lane, from.inner_step, lines, place + k * size);
      lane += size;
      place += size * from.inner + panel_gap;
    }
  }
}

/// Lines of a panel's first `lanes` elements, then zeros.
template <class V>
void copy_padded_lines(const float* from, std::int64_t step, std::int64_t lanes, std::int64_t inner,
                       float* to) {
  for (std::int64_t k = 0; k < inner; ++k)
    for (std::int64_t lane = 0; lane < panel_columns_of<V>; ++lane)
      to[k * panel_columns_of<V> + lane] = lane < lanes ? from[k * step + lane] : 0;
}

template <class V>
void pack_columns(const strided_block& from, float* to) {
  constexpr auto width = panel_columns_of<V>;
  const auto panel_size = width * from.inner + panel_gap;
  if (from.inner_step == 1) {
    auto columns = from;
    for (auto rest = from.lanes; rest > 0; rest -= width, to += panel_size) {
      columns.lanes = rest < width ? rest : width;
      pack_by_transposition<V>(columns, width, to);
      columns.elements += width * from.lane_step;
    }
    return;
  }
  for (std::int64_t k = 0; k < from.inner; k += lines_at_once) {
    auto lines = from.inner - k < lines_at_once ? from.inner - k : lines_at_once;
    const auto* lane = from.elements + k * from.inner_step;
    auto* place = to + k * width;
    auto rest = from.lanes;
    for (; rest >= width; rest -= width, lane += width, place += panel_size)
      copy_lines<width>(lane, from.inner_step, lines, place);
    if (rest > 0) copy_padded_lines<V>(lane, from.inner_step, rest, lines, place);
  }
}

template <class V>
void pack_gathered(const gathered_panel& from, float* to) {
  static_assert(panel_columns_of<V> <= panel_gap);
  for (std::int64_t k = 0; k < from.inner; ++k, to += panel_columns_of<V>)
    for (const auto& run : from.runs) {
      const auto* elements = from.elements + from.taps[k] + run.offset;
#pragma GCC unroll 2
      for (int v = 0; v < tile_vectors; ++v)
        V::store(V::load(elements + v * V::width), to + run.lane + v * V::width);
    }
}

}  // namespace
}  // namespace troupe::cpu
