#include "troupe/ops/cuda/attention/attention_passes.hpp"
#include "troupe/ops/cuda/attention/attention_tiles.cuh"

// With the recomputed probabilities P = e^(scale Q K^T - log_sum_exp):
//   dV = P^T dO, dP = dO V^T, dS = P (dP - delta), dQ = scale dS K, dK = scale dS^T Q
// One kernel holds queries and streams the keys they attend to; another holds keys and streams the queries
// that attend to them, with everything transposed. So every gradient is summed by one warp in a fixed order,
// without atomics, at the cost of computing P and dP twice. The held rows stay in registers as left operands,
// as do P and dS for 16 streamed rows at a time.

namespace troupe::cuda {
namespace {

template <class T, int Width>
struct backward_memory {
  using sizes = tile_sizes<T, Width>;
  static constexpr int streamed_rows = Width * sizeof(T) <= 128 ? 64 : 32;
  using held = shared_rows<T, Width, sizes::held_rows>;
  using streamed = shared_rows<T, Width, streamed_rows>;
  static constexpr int tiles_bytes = (2 * held::size + 4 * streamed::size) * sizeof(T);
  static constexpr int size_bytes = tiles_bytes + 2 * streamed_rows * sizeof(float2);

  T* first;
  __device__ held held_rows(int operand) const { return {first + operand * held::size}; }
  /// Double buffering: one of two stages is filled while the other is read.
  __device__ streamed streamed_of(int stage, int operand) const {
    return {first + 2 * held::size + (2 * stage + operand) * streamed::size};
  }
  __device__ float2* row_sums_of(int stage) const {
    return reinterpret_cast<float2*>(reinterpret_cast<std::byte*>(first) + tiles_bytes) +
           stage * streamed_rows;
  }
};

/// The two products of a warp's rows with 16 streamed rows, which become P and dS.
template <class T, int Width>
struct backward_warp {
  static constexpr int row_tiles = tile_sizes<T, Width>::row_tiles,
                       column_tiles = tile_sizes<T, Width>::column_tiles;
  using operands = operand_tile<T>[row_tiles][column_tiles];
  using sums = sum_tile[row_tiles][column_tiles];
  sum_tile scores[row_tiles], dprobabilities[row_tiles];

  /// `held(operand, row tile, column tile)` returns a tile of each product's left operand.
  template <class Rows, class Held>
  __device__ void compute_products(const Held& held, const Rows& for_scores, const Rows& for_dprobabilities,
                                   int row) {
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) scores[i] = dprobabilities[i] = {};
#pragma unroll
    for (int column = 0; column < column_tiles; ++column) {
      auto right = load_right_transposed(for_scores.tile(row, column * tile_size), for_scores.stride);
      auto dright =
          load_right_transposed(for_dprobabilities.tile(row, column * tile_size), for_scores.stride);
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) {
        add_product<T>(held(0, i, column), right, scores[i]);
        add_product<T>(held(1, i, column), dright, dprobabilities[i]);
      }
    }
  }

  /// to += what `from` holds of each row tile, times the 16 streamed rows
  template <class Rows>
  __device__ static void add_rows(const sum_tile (&from)[row_tiles], const Rows& rows, int row, sums& to) {
    operand_tile<T> left[row_tiles];
#pragma unroll
    for (int i = 0; i < row_tiles; ++i) left[i] = as_left<T>(from[i]);
#pragma unroll
    for (int column = 0; column < column_tiles; ++column) {
      auto right = load_right(rows.tile(row, column * tile_size), rows.stride);
#pragma unroll
      for (int i = 0; i < row_tiles; ++i) add_product<T>(left[i], right, to[i][column]);
    }
  }
};

/// score = e^(scale score - log_sum_exp), or 0 if not `seen`; dprobability = dS. `scale` and log_sum_exp are
/// to base 2; row_sums holds the query's log_sum_exp and delta.
__device__ inline void find_gradient(bool seen, float scale, float2 row_sums, float& score,
                                     float& dprobability) {
  score = seen ? power_of_two(score * scale - row_sums.x) : 0;
  dprobability = score * (dprobability - row_sums.y);
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads)
    query_kernel(attention_heads heads, const T* dout, const T* qkv, const float2* row_sums, T* dqkv) {
  using sizes = tile_sizes<T, Width>;
  backward_memory<T, Width> memory{dynamic_shared_memory<T>()};
  constexpr int streamed = memory.streamed_rows;
  auto block = head_block::from_last(heads, sizes::held_rows);
  auto key_rows = heads.part(qkv, block.head, 1), value_rows = heads.part(qkv, block.head, 2);
  auto first_query = block.first + warp_of_block() * sizes::warp_rows;
  auto end = heads.end_of_keys(block.first + sizes::held_rows);
  auto scale = heads.scale * log2_of_e;

  begin_rows(memory.held_rows(0), heads.part(qkv, block.head, 0), block.first, heads);
  begin_rows(memory.held_rows(1), heads.out(dout, block.head), block.first, heads);
  begin_rows(memory.streamed_of(0, 0), key_rows, 0, heads);
  begin_rows(memory.streamed_of(0, 1), value_rows, 0, heads);
  float2 of_rows[sizes::row_tiles][2];
#pragma unroll
  for (int row = 0; row < sizes::row_tiles; ++row)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      auto query = min(first_query + row * tile_size + sum_row(2 * half), heads.positions - 1);
      of_rows[row][half] = row_sums[block.head * heads.positions + query];
    }
  finish_copies();
  __syncthreads();
  typename backward_warp<T, Width>::operands held[2];
  load_held(memory.held_rows(0), held[0]);
  load_held(memory.held_rows(1), held[1]);

  backward_warp<T, Width> warp;
  typename backward_warp<T, Width>::sums dquery = {};
  for (int first_key = 0, stage = 0; first_key < end; first_key += streamed, stage ^= 1) {
    if (first_key + streamed < end) {
      begin_rows(memory.streamed_of(stage ^ 1, 0), key_rows, first_key + streamed, heads);
      begin_rows(memory.streamed_of(stage ^ 1, 1), value_rows, first_key + streamed, heads);
    }
    auto keys = memory.streamed_of(stage, 0), values = memory.streamed_of(stage, 1);
    for (int row = 0; row < streamed; row += tile_size) {
      auto key = first_key + row;
      if (heads.causal && key >= first_query + sizes::warp_rows) break;
      auto all_seen =
          key + tile_size <= heads.positions && (!heads.causal || key + tile_size <= first_query + 1);
      warp.compute_products([&](int operand, int tile, int column) { return held[operand][tile][column]; },
                            keys, values, row);
#pragma unroll
      for (int tile = 0; tile < sizes::row_tiles; ++tile)
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          auto at = key + sum_column(i);
          auto seen = all_seen || (at < heads.positions &&
                                   (!heads.causal || at <= first_query + tile * tile_size + sum_row(i)));
          find_gradient(seen, scale, of_rows[tile][i / 2 % 2], warp.scores[tile].values[i],
                        warp.dprobabilities[tile].values[i]);
        }
      warp.add_rows(warp.dprobabilities, keys, row, dquery);
    }
    finish_copies();
    __syncthreads();  // the next rows are loaded, and all threads have read these
  }
  write_rows(
      dquery, [&](int, int) { return heads.scale; }, memory.held_rows(0), heads.part(dqkv, block.head, 0),
      block.first, heads);
}

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads)
    key_kernel(attention_heads heads, const T* dout, const T* qkv, const float2* row_sums, T* dqkv) {
  using sizes = tile_sizes<T, Width>;
  backward_memory<T, Width> memory{dynamic_shared_memory<T>()};
  constexpr int streamed = memory.streamed_rows;
  auto block = head_block::in_order(heads, sizes::held_rows);
  auto query_rows = heads.part(qkv, block.head, 0), dout_rows = heads.out(dout, block.head);
  auto first_key = block.first + warp_of_block() * sizes::warp_rows;
  auto scale = heads.scale * log2_of_e;
  row_sums += block.head * heads.positions;
  auto begin_queries = [&](int stage, int first) {
    begin_rows(memory.streamed_of(stage, 0), query_rows, first, heads);
    begin_rows(memory.streamed_of(stage, 1), dout_rows, first, heads);
    if (threadIdx.x < streamed)
      memory.row_sums_of(stage)[threadIdx.x] =
          first + threadIdx.x < heads.positions ? row_sums[first + threadIdx.x] : float2{0, 0};
  };

  auto first_query = heads.causal ? block.first / streamed * streamed : 0;
  begin_rows(memory.held_rows(0), heads.part(qkv, block.head, 1), block.first, heads);
  begin_rows(memory.held_rows(1), heads.part(qkv, block.head, 2), block.first, heads);
  begin_queries(0, first_query);
  finish_copies();
  __syncthreads();
  // The registers suffice for the keys, but not also for the values.
  typename backward_warp<T, Width>::operands keys;
  load_held(memory.held_rows(0), keys);
  auto held = [&](int operand, int tile, int column) {
    return operand == 0 ? keys[tile][column]
                        : load_held_tile(memory.held_rows(1), sizes::row_tiles, tile, column);
  };

  backward_warp<T, Width> warp;
  typename backward_warp<T, Width>::sums dkey = {}, dvalue = {};
  for (int stage = 0; first_query < heads.positions; first_query += streamed, stage ^= 1) {
    if (first_query + streamed < heads.positions) begin_queries(stage ^ 1, first_query + streamed);
    auto queries = memory.streamed_of(stage, 0), douts = memory.streamed_of(stage, 1);
    const auto* of_queries = memory.row_sums_of(stage);
    for (int row = 0; row < streamed; row += tile_size) {
      auto query = first_query + row;
      if (heads.causal && query + tile_size <= first_key) continue;
      auto all_seen = !heads.causal || first_key + sizes::warp_rows <= query + 1;
      warp.compute_products(held, queries, douts, row);
#pragma unroll
      for (int tile = 0; tile < sizes::row_tiles; ++tile)
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          auto seen = all_seen || first_key + tile * tile_size + sum_row(i) <= query + sum_column(i);
          find_gradient(seen, scale, of_queries[row + sum_column(i)], warp.scores[tile].values[i],
                        warp.dprobabilities[tile].values[i]);
        }
      warp.add_rows(warp.scores, douts, row, dvalue);
      warp.add_rows(warp.dprobabilities, queries, row, dkey);
    }
    finish_copies();
    __syncthreads();  // as above
  }
  write_rows(
      dkey, [&](int, int) { return heads.scale; }, memory.held_rows(0), heads.part(dqkv, block.head, 1),
      block.first, heads);
  write_rows(
      dvalue, [](int, int) { return 1.0F; }, memory.held_rows(1), heads.part(dqkv, block.head, 2),
      block.first, heads);
}

}  // namespace

void attention_backward_on_tensor_cores(const tensor& dout, const tensor& qkv, const tensor& row_sums,
                                        const attention_options& options, tensor& dqkv) {
  auto heads = heads_of(dout, options, qkv, dqkv);
  with_tiles(dout.dtype(), heads.width, [&](auto zero, auto width) {
    using T = decltype(zero);
    auto queue = [&](auto kernel) {
      launch_with_memory(dout.device(), head_block::count(heads, tile_sizes<T, width>::held_rows),
                         tile_threads, backward_memory<T, width>::size_bytes, kernel, heads,
                         elements_of<T>(dout), elements_of<T>(qkv), elements_of<float2>(row_sums),
                         elements_of<T>(dqkv));
    };
    queue(query_kernel<T, width>);
    queue(key_kernel<T, width>);
  });
}

}  // namespace troupe::cuda
