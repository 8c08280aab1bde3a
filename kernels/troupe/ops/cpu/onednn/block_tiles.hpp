#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "troupe/ops/cpu/block_product.hpp"

namespace troupe::cpu {

/// block_product with register tiles of the result (a GEMM micro-kernel). Each element is one chain of fused
/// multiply-adds in the order of `inner`, so both versions give the same bits.
void tiles_of_avx2(const block_product_shape& product, const float* a, const float* b, float* c);
void tiles_of_avx512(const block_product_shape& product, const float* a, const float* b, float* c);

// Shared implementation: compiled for one instruction set by the file that includes it, with FMA contraction.
namespace {

template <int Width>
struct vector_of {
  typedef float type __attribute__((vector_size(Width * sizeof(float))));
};
template <>
struct vector_of<1> {
  using type = float;
};

template <class Vector>
[[gnu::always_inline]] inline Vector load(const float* from) {
  Vector elements;
  std::memcpy(&elements, from, sizeof elements);
  return elements;
}

template <class Vector>
[[gnu::always_inline]] inline void store(Vector elements, float* to) {
  std::memcpy(to, &elements, sizeof elements);
}

/// Pointers to the operands of a tile.
struct tile_place {
  const float *a, *b;
  float* c;
};

/// [Rows, Vectors * Width] of the result. a: any strides; b: rows of [inner, columns].
template <int Rows, int Vectors, std::int64_t Width>
[[gnu::always_inline]] inline void multiply_tile(const block_product_shape& product, const tile_place& at) {
  using vector = typename vector_of<Width>::type;
  const auto row_step = product.left_is_transposed ? 1 : product.left_stride;
  const auto inner_step = product.left_is_transposed ? product.left_stride : 1;
  vector sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v)
      sums[row][v] = product.accumulate ? load<vector>(at.c + row * product.stride + v * Width) : vector{};
  const auto *left = at.a, *right = at.b;
  for (std::int64_t k = 0; k < product.inner; ++k, left += inner_step, right += product.right_stride) {
    vector terms[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) terms[v] = load<vector>(right + v * Width);
#pragma GCC unroll 8
    for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[row][v] += left[row * row_step] * terms[v];
  }
#pragma GCC unroll 8
  for (int row = 0; row < Rows; ++row)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) store(sums[row][v], at.c + row * product.stride + v * Width);
}

/// Computes some columns of all rows, Rows rows at a time, then smaller tiles.
template <int Rows, int Vectors, int Width>
void multiply_columns(const block_product_shape& product, tile_place at, std::int64_t rows) {
  const auto row_step = product.left_is_transposed ? 1 : product.left_stride;
  for (; rows >= Rows; rows -= Rows) {
    multiply_tile<Rows, Vectors, Width>(product, at);
    at.a += Rows * row_step;
    at.c += Rows * product.stride;
  }
  if constexpr (Rows > 1)
    if (rows > 0) multiply_columns<Rows / 2, Vectors, Width>(product, at, rows);
}

/// Computes all columns: whole tiles, then single vectors, then narrower vectors.
template <int Rows, int Vectors, int Width>
void multiply_in_tiles(const block_product_shape& product, tile_place at, std::int64_t columns) {
  constexpr int at_once = Vectors * Width;
  for (; columns >= at_once; columns -= at_once) {
    multiply_columns<Rows, Vectors, Width>(product, at, product.rows);
    at.b += at_once;
    at.c += at_once;
  }
  if (columns == 0) return;
  if constexpr (Vectors > 1)
    multiply_in_tiles<Rows, Vectors / 2, Width>(product, at, columns);
  else if constexpr (Width > 1)
    multiply_in_tiles<Rows, 1, (Width > 4 ? Width / 2 : 1)>(product, at, columns);
}

}  // namespace

}  // namespace troupe::cpu
