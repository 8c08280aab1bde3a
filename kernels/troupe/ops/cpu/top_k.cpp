#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>

#include "troupe/ops/cpu/kernel_tables.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"

namespace troupe::cpu {
namespace {

/// Whether the element at index a comes before that at b.
template <class T>
struct comes_before {
  const T* row;
  bool operator()(std::int64_t a, std::int64_t b) const {
    auto x = static_cast<float>(row[a]), y = static_cast<float>(row[b]);
    auto x_is_nan = x != x, y_is_nan = y != y;
    if (x_is_nan != y_is_nan) return x_is_nan;
    return x > y || (!(x < y) && a < b);
  }
};

/// A heap of the k best elements so far with the worst at the top: most elements cost one comparison.
template <class T>
void select_row(const T* row, std::int64_t size, T* values, std::int64_t* indices, std::int64_t k) {
  comes_before<T> before{row};
  std::iota(indices, indices + k, std::int64_t{0});
  std::make_heap(indices, indices + k, before);
  for (std::int64_t i = k; i < size; ++i) {
    if (!before(i, indices[0])) continue;
    std::pop_heap(indices, indices + k, before);
    indices[k - 1] = i;
    std::push_heap(indices, indices + k, before);
  }
  std::sort_heap(indices, indices + k, before);
  for (std::int64_t i = 0; i < k; ++i) values[i] = row[indices[i]];
}

/// Rows up to this length are sorted completely, without branches.
constexpr std::int32_t short_row = 16;

using four_floats = float __attribute__((vector_size(16)));
using four_numbers = std::int32_t __attribute__((vector_size(16)));

/// Computes the rank of each of the first `size` elements (rank sort). NaN counts as the largest; zeros of
/// both signs are equal.
void rank_elements(const float* elements, std::int32_t size, std::int32_t* rank) {
  constexpr auto vectors = short_row / 4;
  using limits = std::numeric_limits<std::int32_t>;
  std::array<four_numbers, vectors> order, before{}, index;  // order: whole numbers in that of the elements
  for (std::int32_t v = 0; v < vectors; ++v) {
    four_floats element;
    std::memcpy(&element, elements + std::ptrdiff_t{4} * v, sizeof element);
    auto bits = std::bit_cast<four_numbers>(element + 0.0F);
    auto number = bits < 0 ? bits ^ limits::max() : bits;  // there is no -0.0 here
    order[v] = element == element ? number : number - number + limits::max();
    index[v] = four_numbers{0, 1, 2, 3} + 4 * v;
  }
  for (std::int32_t other = 0; other < size; ++other) {
    auto own = std::bit_cast<std::array<std::int32_t, short_row>>(order)[other];
#pragma GCC unroll 4
    for (std::int32_t v = 0; v < vectors; ++v)
      before[v] -= own > order[v] + (index[v] > other);  // what is true is -1
  }
  std::memcpy(rank, before.data(), sizeof before);
}

template <class T>
void sort_row(const T* row, std::int64_t size, T* values, std::int64_t* indices, std::int64_t k) {
  std::array<float, short_row> elements{};
  std::array<std::int32_t, short_row> rank;
  std::array<T, short_row> sorted;
  std::array<std::int64_t, short_row> places;
  std::transform(row, row + size, elements.begin(), [](T element) { return static_cast<float>(element); });
  rank_elements(elements.data(), static_cast<std::int32_t>(size), rank.data());
  for (std::int64_t i = 0; i < size; ++i) {
    sorted[rank[i]] = row[i];
    places[rank[i]] = i;
  }
  std::copy_n(sorted.begin(), k, values);
  std::copy_n(places.begin(), k, indices);
}

template <class T>
void select_rows(const tensor& x, tensor& values, tensor& indices) {
  auto size = x.shape()[-1], k = values.shape()[-1];
  const auto* elements = x.values<T>().data();
  auto* best = values.values<T>().data();
  auto* places = indices.values<std::int64_t>().data();
  parallel_for(x.num_elements() / size, x.num_elements(), [&](std::int64_t row) {
    auto select = size <= short_row ? sort_row<T> : select_row<T>;
    select(elements + row * size, size, best + row * k, places + row * k, k);
  });
}

void select(const tensor& x, tensor& values, tensor& indices) {
  if (x.dtype() == dtype::f32) return select_rows<float>(x, values, indices);
  if (x.dtype() == dtype::bf16) return select_rows<bfloat16>(x, values, indices);
  select_rows<float16>(x, values, indices);
}

}  // namespace

top_k_kernels top_k() { return {.select = select}; }

}  // namespace troupe::cpu
