#pragma once
#include "troupe/ops/cuda/attention/attention_heads.cuh"

// Shared code of the attention kernels without tensor cores. They compute tiles (squares) of 64 x 64 scores,
// 4 x 4 per thread of 256, and load rows in parts, so that heads of any width fit into the same shared
// memory.

namespace troupe::cuda {

constexpr int square_rows = 64, square_threads = 256;
constexpr int row_part = 32;  ///< elements of 64 rows, or 64 rows' weights, that are multiplied at a time

/// The number of thread blocks per multiprocessor that the kernels are compiled for: the largest without
/// register spills.
constexpr int square_blocks_at_once(int width) { return width <= 64 ? 2 : 1; }

/// Which scores are this thread's: rows first_row() to first_row() + 3, and columns first_column() + 16 j. Of
/// what it sums over a square's columns, which has the same rows, it has elements 4 first_column() to + 3 of
/// each 64. The 16 threads with the same rows are in one warp.
struct square_place {
  __device__ static int first_row() { return static_cast<int>(threadIdx.x) / 16 * 4; }
  __device__ static int first_column() { return static_cast<int>(threadIdx.x % 16); }
};

using square_scores = float[4][4];

struct square_memory {
  static constexpr int part_stride = row_part + 4, weight_stride = square_rows + 4;
  // Both are read and written as float4.
  alignas(
      16) float parts[2 * square_rows * part_stride];  ///< of rows; their beginnings lie in different banks
  alignas(16) float weights[square_rows * weight_stride];
};
static_assert(alignof(square_memory) == alignof(float4));

template <class T>
struct alignas(4 * sizeof(T)) four {
  T lanes[4];
};

/// `Columns` elements from `column` on of `Rows` rows, in shared memory with `stride`; what is not there is
/// 0.
template <int Rows, int Columns, class T>
__device__ void load_part(float* to, int stride, head_rows<const T> from, int first, int column,
                          const attention_heads& heads) {
  auto there = [&](int row, int offset) {
    return first + row < heads.positions && column + offset < heads.width;
  };
  if (!heads.rows_aligned) {
#pragma unroll 1
    for (int i = threadIdx.x; i < Rows * Columns; i += square_threads) {
      auto row = i / Columns, at = i % Columns;
      to[row * stride + at] = there(row, at) ? as_float(from.row(first + row)[column + at]) : 0;
    }
    return;
  }
#pragma unroll
  for (int i = threadIdx.x; i < Rows * Columns / 4; i += square_threads) {
    auto row = i / (Columns / 4), at = i % (Columns / 4) * 4;
    four<T> values{};
    if (there(row, at)) values = *reinterpret_cast<const four<T>*>(from.row(first + row) + column + at);
    *reinterpret_cast<float4*>(to + row * stride + at) = {
        as_float(values.lanes[0]), as_float(values.lanes[1]), as_float(values.lanes[2]),
        as_float(values.lanes[3])};
  }
}

__device__ inline float4 load_four(const float* from) { return *reinterpret_cast<const float4*>(from); }

/// scores = rows of `left` from `first_left` on, times those of `right`, transposed.
template <class T>
__device__ void find_scores(square_memory& memory, head_rows<const T> left, int first_left,
                            head_rows<const T> right, int first_right, const attention_heads& heads,
                            square_scores& scores) {
  constexpr auto stride = square_memory::part_stride;
  auto *lefts = memory.parts, *rights = memory.parts + square_rows * stride;
#pragma unroll
  for (auto& row : scores)
#pragma unroll
    for (auto& score : row) score = 0;
  for (int column = 0; column < heads.width; column += row_part) {
    __syncthreads();  // what was there may still be read
    load_part<square_rows, row_part>(lefts, stride, left, first_left, column, heads);
    load_part<square_rows, row_part>(rights, stride, right, first_right, column, heads);
    __syncthreads();
#pragma unroll 1
    for (int k = 0; k < row_part; k += 4) {
      float4 row[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) row[i] = load_four(lefts + (square_place::first_row() + i) * stride + k);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        auto other = load_four(rights + (square_place::first_column() + 16 * j) * stride + k);
#pragma unroll
        for (int i = 0; i < 4; ++i)
          scores[i][j] += row[i].x * other.x + row[i].y * other.y + row[i].z * other.z + row[i].w * other.w;
      }
    }
  }
}

/// Stores the weights in shared memory, where add_rows() of the threads with the same rows reads them.
__device__ inline void store_weights(square_memory& memory, const square_scores& weights) {
  __syncwarp();  // those before may still be read
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      memory.weights[(square_place::first_row() + i) * square_memory::weight_stride +
                     square_place::first_column() + 16 * j] = weights[i][j];
}

/// The partial sums of a thread over its four rows of Width elements.
template <int Width>
struct square_sums {
  float values[4][Width / 16] = {};

  /// The thread's elements are part(row, c), four of them from element(c) on.
  static constexpr int num_parts = Width / 64;
  __device__ static int element(int part) { return 64 * part + 4 * square_place::first_column(); }

  /// += weights times the elements from `column` on of 64 rows from `first` on.
  template <class T>
  __device__ void add_rows(square_memory& memory, head_rows<const T> rows, int first, int column,
                           const attention_heads& heads) {
    for (int part = 0; part < square_rows; part += row_part) {
      __syncthreads();  // what was there may still be read
      load_part<row_part, Width>(memory.parts, Width, rows, first + part, column, heads);
      __syncthreads();
#pragma unroll 2
      for (int k = 0; k < row_part; k += 4) add_four(memory, part, k);
    }
  }

  template <class T>
  __device__ void write(head_rows<T> to, int first, int column, const attention_heads& heads,
                        const float (&factors)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < Width / 16; ++j) {
        auto row = first + square_place::first_row() + i, at = column + element(j / 4) + j % 4;
        if (row < heads.positions && at < heads.width)
          to.row(row)[at] = rounded<T>(values[i][j] * factors[i]);
      }
  }

 private:
  __device__ void add_four(const square_memory& memory, int part, int k) {
    float weights[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      auto four_weights = load_four(
          memory.weights + (square_place::first_row() + i) * square_memory::weight_stride + part + k);
      weights[i][0] = four_weights.x, weights[i][1] = four_weights.y;
      weights[i][2] = four_weights.z, weights[i][3] = four_weights.w;
    }
#pragma unroll
    for (int at = 0; at < 4; ++at)
#pragma unroll
      for (int c = 0; c < num_parts; ++c) {
        auto row = load_four(memory.parts + (k + at) * Width + element(c));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          values[i][4 * c] += weights[i][at] * row.x;
          values[i][4 * c + 1] += weights[i][at] * row.y;
          values[i][4 * c + 2] += weights[i][at] * row.z;
          values[i][4 * c + 3] += weights[i][at] * row.w;
        }
      }
  }
};

/// Calls `visit` with a value of T, for the dtype, and as a constant with how many elements of a row a block
/// of threads sums; wider heads take several.
template <class Visit>
void with_squares(dtype type, int width, const Visit& visit) {
  if (type == dtype::f32 && width <= 64) return visit(float{}, std::integral_constant<int, 64>());
  with_floating(type, [&](auto zero) { visit(zero, std::integral_constant<int, 128>()); });
}

/// A head's blocks of rows, and the parts of the heads' width.
inline dim3 square_blocks(const attention_heads& heads, int width) {
  return {head_block::count(heads, square_rows), blocks_for(heads.width, static_cast<unsigned>(width))};
}

}  // namespace troupe::cuda
