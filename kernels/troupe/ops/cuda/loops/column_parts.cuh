#pragma once
#include <type_traits>

#include "troupe/ops/cuda/loops/alignment.hpp"
#include "troupe/ops/cuda/loops/axis_parts.cuh"

// Parts of columns: a thread reduces those of one column or of several adjacent ones, and loads the elements
// of a row in these as one word of up to 16 bytes. Since the order of the rows is kept, few threads may have
// to read much: each loads up to 64 rows at once.

namespace troupe::cuda {

/// Has the bits of the elements of a row in `Columns` adjacent columns.
template <class T, int Columns>
using row_word =
    std::conditional_t<sizeof(T) * Columns == 16, uint4,
                       std::conditional_t<sizeof(T) * Columns == 4, std::uint32_t, std::uint16_t>>;

/// Calls `visit(row, elements)` for the rows of a part of `Columns` columns, in order. elements: those of the
/// row, as floats.
template <int Columns, class T, class Visit>
__device__ void for_each_row_of_part(const axis_part& part, const T* x, std::int64_t inner,
                                     const Visit& visit) {
  using word = row_word<T, Columns>;
  constexpr int at_once = sizeof(word) == 16 ? 16 : 64, group = 8;
  word words[at_once];
  const auto* next = x + part.start;
  auto load = [&](word& to) {
    to = *reinterpret_cast<const word*>(next);
    next += inner;
  };
  auto visit_word = [&](int row, const word& from) {
    T lanes[Columns];
    memcpy(&lanes, &from, sizeof(from));
    float elements[Columns];
#pragma unroll
    for (int i = 0; i < Columns; ++i) elements[i] = as_float(lanes[i]);
    visit(row, elements);
  };
  int row = 0, size = static_cast<int>(part.size);
  for (; row + at_once <= size; row += at_once) {
#pragma unroll
    for (int i = 0; i < at_once; ++i) load(words[i]);
#pragma unroll
    for (int i = 0; i < at_once; ++i) visit_word(row + i, words[i]);
  }
  auto for_groups_of_rest = [&](const auto& visit_row) {
#pragma unroll
    for (int first = 0; first < at_once; first += group)
      if (row + first < size)
#pragma unroll
        for (int i = first; i < first + group; ++i)
          if (row + i < size) visit_row(i);
  };
  for_groups_of_rest([&](int i) { load(words[i]); });
  for_groups_of_rest([&](int i) { visit_word(row + i, words[i]); });
}

/// Calls `visit(index)` with the index of the first of the parts, of `Columns` adjacent columns, that are
/// this thread's, if it has some.
template <int Columns, class Visit>
__device__ void for_parts_of_thread(const axis_parts& parts, const Visit& visit) {
  auto index = (static_cast<std::int64_t>(blockIdx.x) * part_threads + threadIdx.x) * Columns;
  if (index < parts.total) visit(index);
}

/// Queues `kernel_for(columns)(parts, arguments...)` for parts of columns of x, whose elements are T. A
/// thread has `columns`, a constant: as many as the alignment permits, if that leaves enough threads. The
/// kernel calls for_parts_of_thread().
template <class T, class KernelFor, class... Arguments>
void launch_on_columns(const tensor& x, const axis_parts& parts, const KernelFor& kernel_for,
                       Arguments... arguments) {
  constexpr int in_pack = 16 / sizeof(T), in_word = 4 / sizeof(T);
  constexpr std::int64_t enough_threads = 32768;
  auto queue = [&](auto columns) {
    launch(x.device(), blocks_for(parts.total / columns, part_threads), part_threads, kernel_for(columns),
           parts, arguments...);
  };
  auto alignment = alignment_of(begin_of(x, parts.along.inner));
  if (alignment >= 16 && parts.total / in_pack >= enough_threads)
    return queue(std::integral_constant<int, in_pack>());
  if (alignment >= 4) return queue(std::integral_constant<int, in_word>());
  queue(std::integral_constant<int, 1>());
}

}  // namespace troupe::cuda
