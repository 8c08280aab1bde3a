#pragma once
#include "troupe/ops/cuda/attention/attention_heads.cuh"
#include "troupe/ops/cuda/attention/attention_passes.hpp"
#include "troupe/ops/cuda/attention/tensor_core.cuh"

// Shared code of the attention kernels on tensor cores. A thread block of four warps holds some rows of a
// head and streams the other rows, `streamed_rows` at a time. Heads narrower than Width are zero-padded.

namespace troupe::cuda {

constexpr int tile_warps = 4, tile_threads = tile_warps * warp_threads;
constexpr float log2_of_e = 1.44269504088896341F;

template <class T>
constexpr int widest_head = sizeof(T) == 2 ? widest_16_bit_head : widest_tf32_head;

/// Shared memory in rows of Width elements. Each row begins 16 bytes further than the one before ends, so
/// that eight rows' packs of one column lie in different banks.
template <class T, int Width, int Rows>
struct shared_rows {
  static constexpr int stride = Width + pack<T>::size;
  static constexpr int size = Rows * stride;
  T* first;

  __device__ T* tile(int row, int column) const { return first + row * stride + column; }
};

/// The tile sizes of a kernel for heads of Width elements.
template <class T, int Width>
struct tile_sizes {
  static constexpr int column_tiles = Width / tile_size;
  static constexpr int row_tiles = Width * sizeof(T) <= 128 ? 2 : 1;  ///< row tiles that a warp holds
  static constexpr int warp_rows = row_tiles * tile_size;
  static constexpr int held_rows = tile_warps * warp_rows;
};

__device__ inline int warp_of_block() { return static_cast<int>(threadIdx.x / warp_threads); }

/// Begins an asynchronous copy of the rows from position `first` on; elements beyond the last position or a
/// row's end become 0.
template <class T, int Width, int Rows>
__device__ void begin_rows(shared_rows<T, Width, Rows> to, head_rows<const T> from, int first,
                           const attention_heads& heads) {
  constexpr int packs = Width / pack<T>::size;
#pragma unroll
  for (int i = threadIdx.x; i < Rows * packs; i += tile_threads) {
    auto row = i / packs, column = i % packs * pack<T>::size, position = first + row;
    auto* place = to.tile(row, column);
    auto there = position < heads.positions && column < heads.width;
    if (heads.rows_aligned) {
      begin_copy(place, there ? from.row(position) + column : from.first, there);
      continue;
    }
    pack<T> values;
#pragma unroll
    for (int lane = 0; lane < values.size; ++lane)
      values.lanes[lane] =
          there && column + lane < heads.width ? from.row(position)[column + lane] : rounded<T>(0);
    store_pack(place, values);
  }
}

/// Writes a warp's tiles, times `factors(row tile, half)` of their rows, through its own rows of the shared
/// memory `buffer`, which no other warp reads any more.
template <class T, int Width, int Rows, int RowTiles, class Factors>
__device__ void write_rows(const sum_tile (&sums)[RowTiles][Width / tile_size], const Factors& factors,
                           shared_rows<T, Width, Rows> buffer, head_rows<T> to, int first,
                           const attention_heads& heads) {
  constexpr int packs = Width / pack<T>::size, rows = RowTiles * tile_size;
  auto first_row = warp_of_block() * rows;
#pragma unroll
  for (int row_tile = 0; row_tile < RowTiles; ++row_tile)
#pragma unroll
    for (int column_tile = 0; column_tile < Width / tile_size; ++column_tile)
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const auto* values = sums[row_tile][column_tile].values + i;
        auto factor = factors(row_tile, i / 2 % 2);
        auto* place = buffer.tile(first_row + row_tile * tile_size + sum_row(i),
                                  column_tile * tile_size + sum_column(i));
        store_pair(place, values[0] * factor, values[1] * factor);
      }
  __syncwarp();
  for (int i = threadIdx.x % warp_threads; i < rows * packs; i += warp_threads) {
    auto row = first_row + i / packs, column = i % packs * pack<T>::size, position = first + row;
    if (position >= heads.positions || column >= heads.width) continue;
    const auto* from = buffer.tile(row, column);
    auto* place = to.row(position) + column;
    if (heads.rows_aligned)
      store_pack(place, load_pack(from));
    else
      for (int lane = 0; lane < pack<T>::size && column + lane < heads.width; ++lane)
        place[lane] = from[lane];
  }
}

/// A left operand among the rows of this warp, which has `row_tiles` of them.
template <class T, int Width, int Rows>
__device__ operand_tile<T> load_held_tile(shared_rows<T, Width, Rows> from, int row_tiles, int row,
                                          int column) {
  return load_left(from.tile((warp_of_block() * row_tiles + row) * tile_size, column * tile_size),
                   from.stride);
}

template <class T, int Width, int Rows, int RowTiles>
__device__ void load_held(shared_rows<T, Width, Rows> from,
                          operand_tile<T> (&tiles)[RowTiles][Width / tile_size]) {
#pragma unroll
  for (int row = 0; row < RowTiles; ++row)
#pragma unroll
    for (int column = 0; column < Width / tile_size; ++column)
      tiles[row][column] = load_held_tile(from, RowTiles, row, column);
}

/// Calls `visit` with a value of T, and with Width, as a constant, for the dtype and the width.
template <class Visit>
void with_tiles(dtype type, int width, const Visit& visit) {
  auto with_width = [&](auto zero) {
    if (width <= 32) return visit(zero, std::integral_constant<int, 32>());
    if (width <= 64) return visit(zero, std::integral_constant<int, 64>());
    constexpr int widest = widest_head<decltype(zero)>;
    if constexpr (widest > 64) return visit(zero, std::integral_constant<int, widest>());
  };
  if (type == dtype::f32) return with_width(float{});
  if (type == dtype::bf16) return with_width(bfloat16{});
  with_width(float16{});
}

}  // namespace troupe::cuda
