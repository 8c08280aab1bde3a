#pragma once
#include <algorithm>

#include "troupe/ops/cuda/elements.cuh"
#include "troupe/ops/cuda/launch.cuh"
#include "troupe/ops/gradient_mode.hpp"

// Column sums over many rows, for weight gradients, in an order that depends only on the shape. First each
// block of rows is summed: eight threads per column take every eighth row, and their sums are added in order.
// Then one thread per column adds the blocks' sums in order. No atomics.

namespace troupe::cuda {

constexpr unsigned columns_in_tile = 32, threads_per_column = 8;

__device__ inline void add_to(float1& sum, float1 term) { sum.x += term.x; }
__device__ inline void add_to(float2& sum, float2 term) {
  sum.x += term.x;
  sum.y += term.y;
}

/// sums[block of rows][column] = the sum of term(row, column) over the block's rows; Sum is float1, or float2
/// for two sums at once.
template <class Sum, class Term>
__global__ void sum_blocks_kernel(Term term, std::int64_t rows, std::int64_t columns,
                                  std::int64_t rows_in_block, Sum* sums) {
  __shared__ Sum parts[threads_per_column][columns_in_tile];
  auto lane = threadIdx.x % columns_in_tile, part = threadIdx.x / columns_in_tile;
  auto column = static_cast<std::int64_t>(blockIdx.x) * columns_in_tile + lane;
  auto first = blockIdx.y * rows_in_block, last = min(rows, first + rows_in_block);
  Sum sum{};
  if (column < columns)
    for (auto row = first + part; row < last; row += threads_per_column) add_to(sum, term(row, column));
  parts[part][lane] = sum;
  __syncthreads();
  if (part != 0 || column >= columns) return;
  for (unsigned i = 1; i < threads_per_column; ++i) add_to(sum, parts[i][lane]);
  sums[blockIdx.y * columns + column] = sum;
}

/// gradient (+)= the blocks' sums, of which `stride` floats belong to a column and the one at `sums` counts.
template <class T>
__global__ void combine_blocks_kernel(const float* sums, unsigned stride, std::int64_t num_blocks,
                                      std::int64_t columns, bool accumulate, T* gradient) {
  auto column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (std::int64_t block = 0; block < num_blocks; ++block) sum += sums[(block * columns + column) * stride];
  gradient[column] = rounded<T>(accumulate ? as_float(gradient[column]) + sum : sum);
}

/// [blocks of rows, columns, floats in Sum]
template <class Sum, class Term>
tensor sums_over_rows(std::int64_t rows, std::int64_t columns, device target, Term term) {
  constexpr std::int64_t max_blocks = 128, least_rows = 64;
  auto rows_in_block = std::max(least_rows, (rows + max_blocks - 1) / max_blocks);
  auto num_blocks = (rows + rows_in_block - 1) / rows_in_block;
  auto sums = tensor::empty({num_blocks, columns, static_cast<std::int64_t>(sizeof(Sum) / sizeof(float))},
                            dtype::f32, target);
  dim3 grid(blocks_for(columns, columns_in_tile), static_cast<unsigned>(num_blocks));
  launch(target, grid, columns_in_tile * threads_per_column, sum_blocks_kernel<Sum, Term>, term, rows,
         columns, rows_in_block, elements_of<Sum>(sums));
  return sums;
}

/// gradient (+)= component `component` of each column's Sum. gradient: [columns], floating.
template <class Sum>
void store_sums(const tensor& sums, int component, tensor& gradient, gradient_mode mode) {
  auto columns = gradient.num_elements();
  with_floating(gradient.dtype(), [&](auto zero) {
    using T = decltype(zero);
    launch(gradient.device(), blocks_for(columns), block_threads, combine_blocks_kernel<T>,
           elements_of<float>(sums) + component, unsigned{sizeof(Sum) / sizeof(float)}, sums.shape()[0],
           columns, mode == gradient_mode::accumulate, elements_of<T>(gradient));
  });
}

}  // namespace troupe::cuda
