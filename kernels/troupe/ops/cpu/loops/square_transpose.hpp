#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace troupe::cpu {

/// Elements in 16 bytes: the sides of the square that is transposed in registers.
template <class T>
constexpr std::int64_t square_side = 16 / static_cast<std::int64_t>(sizeof(T));

template <class T>
struct row_of_square {
  typedef T type __attribute__((vector_size(16)));
};

/// The elements of `one` and `other`, which are numbered one after the other, at these places. Clang, with
/// which nothing is measured, takes them one by one.
template <class Row>
[[gnu::always_inline]] inline Row shuffled(const Row& one, const Row& other, const Row& places) {
#if __has_builtin(__builtin_shuffle)
  return __builtin_shuffle(one, other, places);
#else
  constexpr auto side = sizeof(Row) / sizeof(one[0]);
  Row taken{};
  for (std::size_t i = 0; i < side; ++i)
    taken[i] = places[i] < side ? one[places[i]] : other[places[i] - side];
  return taken;
#endif
}

/// to[j * to_step + i] = from[i * from_step + j] for a square, T an unsigned integer. Each of log2(side)
/// rounds interleaves row i with row i + side / 2, the perfect shuffle, after which rows are columns.
template <class T>
[[gnu::always_inline]] inline void transpose_square(const T* from, std::int64_t from_step, T* to,
                                                    std::int64_t to_step) {
  using row = typename row_of_square<T>::type;
  constexpr auto side = square_side<T>;
  row low{}, high{};
  for (std::int64_t i = 0; i < side; ++i) {
    low[i] = static_cast<T>(i / 2 + (i % 2) * side);
    high[i] = static_cast<T>(i / 2 + side / 2 + (i % 2) * side);
  }
  row rows[side], next[side];
  for (std::int64_t i = 0; i < side; ++i) std::memcpy(&rows[i], from + i * from_step, sizeof(row));
#pragma GCC unroll 4
  for (std::int64_t round = 1; round < side; round *= 2) {
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < side / 2; ++i) {
      next[2 * i] = shuffled(rows[i], rows[i + side / 2], low);
      next[2 * i + 1] = shuffled(rows[i], rows[i + side / 2], high);
    }
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < side; ++i) rows[i] = next[i];
  }
  for (std::int64_t i = 0; i < side; ++i) std::memcpy(to + i * to_step, &rows[i], sizeof(row));
}

}  // namespace troupe::cpu
