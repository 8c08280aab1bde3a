#pragma once
#include <algorithm>
#include <type_traits>

#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"
#include "troupe/ops/gradient_mode.hpp"

// Column sums over many rows, for weight gradients, in an order that depends only on the shape. First each
// block of rows is summed: eight threads per column, or per pack of columns, take every eighth row, and their
// sums are added in order. Then 32 threads per column add the blocks' sums in the same way. No atomics.

namespace troupe::cuda {

constexpr unsigned lanes_in_tile = 32, threads_per_column = 8, combining_threads = 32;

__device__ inline void add_to(float1& sum, float1 term) { sum.x += term.x; }
__device__ inline void add_to(float2& sum, float2 term) {
  sum.x += term.x;
  sum.y += term.y;
}

/// The elements at `from` as floats: one, or a pack.
template <class T, int Columns>
__device__ void read_columns(const T* from, float (&values)[Columns]) {
  if constexpr (Columns == 1) {
    values[0] = as_float(*from);
  } else {
    auto loaded = load_pack(from);
#pragma unroll
    for (int i = 0; i < Columns; ++i) values[i] = as_float(loaded.lanes[i]);
  }
}

/// sums[block of rows][column] = the sum of the column's terms over the block's rows. Sum is float1, or
/// float2 for two sums at once. `term(row, column, terms)` sets the terms of `Columns` columns, which a
/// thread sums.
template <class Sum, int Columns, class Term>
__global__ void sum_blocks_kernel(Term term, std::int64_t rows, std::int64_t columns,
                                  std::int64_t rows_in_block, Sum* sums) {
  constexpr unsigned columns_in_tile = lanes_in_tile * Columns;
  __shared__ Sum parts[threads_per_column][columns_in_tile];
  auto lane = threadIdx.x % lanes_in_tile, part = threadIdx.x / lanes_in_tile;
  auto tile = static_cast<std::int64_t>(blockIdx.x) * columns_in_tile, column = tile + lane * Columns;
  auto first = blockIdx.y * rows_in_block, last = min(rows, first + rows_in_block);
  Sum mine[Columns] = {};
  if (column < columns) {
#pragma unroll 4
    for (auto row = first + part; row < last; row += threads_per_column) {
      Sum terms[Columns];
      term(row, column, terms);
#pragma unroll
      for (int i = 0; i < Columns; ++i) add_to(mine[i], terms[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < Columns; ++i) parts[part][lane * Columns + i] = mine[i];
  __syncthreads();
  for (auto at = threadIdx.x; at < columns_in_tile && tile + at < columns; at += blockDim.x) {
    auto sum = parts[0][at];
    for (unsigned i = 1; i < threads_per_column; ++i) add_to(sum, parts[i][at]);
    sums[blockIdx.y * columns + tile + at] = sum;
  }
}

/// gradient (+)= the blocks' sums, of which `stride` floats belong to a column and the one at `sums` counts.
template <class T>
__global__ void combine_blocks_kernel(const float* sums, unsigned stride, std::int64_t num_blocks,
                                      std::int64_t columns, bool accumulate, T* gradient) {
  __shared__ float parts[combining_threads][lanes_in_tile];
  auto lane = threadIdx.x % lanes_in_tile, part = threadIdx.x / lanes_in_tile;
  auto column = static_cast<std::int64_t>(blockIdx.x) * lanes_in_tile + lane;
  float sum = 0;
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t block = part; block < num_blocks; block += combining_threads)
      sum += sums[(block * columns + column) * stride];
  }
  parts[part][lane] = sum;
  __syncthreads();
  if (part != 0 || column >= columns) return;
  for (unsigned i = 1; i < combining_threads; ++i) sum += parts[i][lane];
  gradient[column] = rounded<T>(accumulate ? as_float(gradient[column]) + sum : sum);
}

/// [blocks of rows, columns, floats in Sum]. `in_packs`: the terms can be computed for Term::columns_in_pack
/// columns at once, of which `columns` is a multiple.
template <class Sum, class Term>
tensor sums_over_rows(std::int64_t rows, std::int64_t columns, device target, bool in_packs, Term term) {
  constexpr std::int64_t max_blocks = 128, least_rows = 64;
  auto rows_in_block = std::max(least_rows, (rows + max_blocks - 1) / max_blocks);
  auto num_blocks = (rows + rows_in_block - 1) / rows_in_block;
  auto sums = tensor::empty({num_blocks, columns, static_cast<std::int64_t>(sizeof(Sum) / sizeof(float))},
                            dtype::f32, target);
  auto queue = [&](auto columns_at_once) {
    dim3 grid(blocks_for(columns, lanes_in_tile * columns_at_once), static_cast<unsigned>(num_blocks));
    launch(target, grid, lanes_in_tile * threads_per_column, sum_blocks_kernel<Sum, columns_at_once, Term>,
           term, rows, columns, rows_in_block, elements_of<Sum>(sums));
  };
  if (in_packs)
    queue(std::integral_constant<int, Term::columns_in_pack>());
  else
    queue(std::integral_constant<int, 1>());
  return sums;
}

/// gradient (+)= component `component` of each column's Sum. gradient: [columns], floating.
template <class Sum>
void store_sums(const tensor& sums, int component, tensor& gradient, gradient_mode mode) {
  auto columns = gradient.num_elements();
  with_floating(gradient.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(gradient.device(), blocks_for(columns, lanes_in_tile), lanes_in_tile * combining_threads,
           combine_blocks_kernel<T>, elements_of<float>(sums) + component,
           unsigned{sizeof(Sum) / sizeof(float)}, sums.shape()[0], columns, mode == gradient_mode::accumulate,
           elements_of<T>(gradient));
  });
}

}  // namespace troupe::cuda
