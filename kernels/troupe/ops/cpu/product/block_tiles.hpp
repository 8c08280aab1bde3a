#pragma once
#include <cstdint>

#include "troupe/ops/cpu/product/block_product.hpp"

// block_product in register tiles, without packing: each element of C is one chain of fused multiply-adds in
// the order of the inner axis. Included by one source for each instruction set; besides what tile.hpp lists,
// V has
//
//   V::strip_vectors           vectors in a row of the largest tile
//   V::narrower                a vector of fewer floats, in the end one

namespace troupe::cpu {
namespace {

/// Pointers to the operands of a tile.
struct tile_place {
  const float *a, *b;
  float* c;
};

/// [Rows, Vectors * width] of the result. a: any strides; b: rows of [inner, columns].
template <class V, int Rows, int Vectors>
[[gnu::always_inline]] inline void multiply_block_tile(const block_product_shape& product,
                                                       const tile_place& place) {
  const auto row_step = product.left_is_transposed ? 1 : product.left_stride;
  const auto inner_step = product.left_is_transposed ? product.left_stride : 1;
  V sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sums[row][v] = product.accumulate ? V::load(place.c + row * product.stride + v * V::width) : V::zero();
  const auto *left = place.a, *right = place.b;
  for (std::int64_t k = 0; k < product.inner; ++k, left += inner_step, right += product.right_stride) {
    V terms[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) terms[v] = V::load(right + v * V::width);
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row) {
      auto factor = V::broadcast(left + row * row_step);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[row][v] = V::fused(factor, terms[v], sums[row][v]);
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) V::store(sums[row][v], place.c + row * product.stride + v * V::width);
}

/// Computes some columns of all rows, Rows rows at a time, then smaller tiles.
template <class V, int Rows, int Vectors>
void multiply_columns(const block_product_shape& product, tile_place place, std::int64_t rows) {
  const auto row_step = product.left_is_transposed ? 1 : product.left_stride;
  for (; rows >= Rows; rows -= Rows) {
    multiply_block_tile<V, Rows, Vectors>(product, place);
    place.a += Rows * row_step;
    place.c += Rows * product.stride;
  }
  if constexpr (Rows > 1)
    if (rows > 0) multiply_columns<V, Rows / 2, Vectors>(product, place, rows);
}

/// Computes all columns: whole tiles, then single vectors, then narrower vectors.
template <class V, int Rows, int Vectors>
void multiply_in_tiles(const block_product_shape& product, tile_place place, std::int64_t columns) {
  constexpr int at_once = Vectors * V::width;
  for (; columns >= at_once; columns -= at_once) {
    multiply_columns<V, Rows, Vectors>(product, place, product.rows);
    place.b += at_once;
    place.c += at_once;
  }
  if (columns == 0) return;
  if constexpr (Vectors > 1)
    multiply_in_tiles<V, Rows, Vectors / 2>(product, place, columns);
  else if constexpr (V::width > 1)
    multiply_in_tiles<typename V::narrower, Rows, 1>(product, place, columns);
}

template <class V>
void multiply_block(const block_product_shape& product, const float* a, const float* b, float* c) {
  multiply_in_tiles<V, 4, V::strip_vectors>(product, {a, b, c}, product.columns);
}

}  // namespace
}  // namespace troupe::cpu
