#include "troupe/ops/cuda/attention/attention_passes.hpp"
#include "troupe/ops/cuda/attention/attention_tiles.cuh"

// FlashAttention-2 (Dao 2023): a thread block holds queries and streams the keys they attend to. An online
// softmax rescales a warp's partial sums to the largest score so far (Milakov and Gimelshein, Online
// normalizer calculation for softmax, 2018). Each block of values is copied while the scores are computed,
// and the next block of keys while the values are summed.

namespace troupe::cuda {
namespace {

constexpr int keys_per_block = 64, key_tiles = keys_per_block / tile_size;

/// The online softmax, to base 2, of the two rows of a row tile in which a thread has elements.
struct running_softmax {
  float largest[2] = {-HUGE_VALF, -HUGE_VALF};
  float total[2] = {};  ///< sums of this thread's elements alone

  /// Adds scores, replacing them by unnormalised probabilities. Returns the factor for earlier sums.
  __device__ float2 add(sum_tile (&scores)[key_tiles], float scale) {
    float factors[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      auto top = largest[half];
      for_each(scores, half, [&](float& score) { top = fmaxf(top, score * scale); });
      top = fmaxf(top, __shfl_xor_sync(~0U, top, 1));
      top = fmaxf(top, __shfl_xor_sync(~0U, top, 2));
      factors[half] = power_of_two(largest[half] - top);
      largest[half] = top;
      total[half] *= factors[half];
      for_each(scores, half, [&](float& score) {
        score = power_of_two(score * scale - top);
        total[half] += score;
      });
    }
    return {factors[0], factors[1]};
  }

  /// Of the row, which four threads share.
  __device__ float total_of_row(int half) const {
    auto sum = total[half] + __shfl_xor_sync(~0U, total[half], 1);
    return sum + __shfl_xor_sync(~0U, sum, 2);
  }

 private:
  template <class Visit>
  __device__ static void for_each(sum_tile (&scores)[key_tiles], int half, const Visit& visit) {
#pragma unroll
    for (auto& tile : scores)
#pragma unroll
      for (int i = 0; i < 8; i += 4) {
        visit(tile.values[i + 2 * half]);
        visit(tile.values[i + 2 * half + 1]);
      }
  }
};

__device__ void hide_unseen(sum_tile (&scores)[key_tiles], int first_query, int first_key,
                            const attention_heads& heads) {
#pragma unroll
  for (int tile = 0; tile < key_tiles; ++tile)
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      auto key = first_key + tile * tile_size + sum_column(i);
      if (key >= heads.positions || (heads.causal && key > first_query + sum_row(i)))
        scores[tile].values[i] = -HUGE_VALF;
    }
}

template <class T, int Width>
struct forward_memory {
  using sizes = tile_sizes<T, Width>;
  using held = shared_rows<T, Width, sizes::held_rows>;
  using streamed = shared_rows<T, Width, keys_per_block>;
  static constexpr int size_bytes = (held::size + 2 * streamed::size) * sizeof(T);

  held queries;
  streamed keys, values;
  __device__ explicit forward_memory(T* first)
      : queries{first}, keys{first + held::size}, values{first + held::size + streamed::size} {}
};

/// The state of one warp.
template <class T, int Width>
struct forward_warp {
  static constexpr int row_tiles = tile_sizes<T, Width>::row_tiles,
                       column_tiles = tile_sizes<T, Width>::column_tiles;
  operand_tile<T> queries[row_tiles][column_tiles];
  sum_tile scores[row_tiles][key_tiles], sums[row_tiles][column_tiles] = {};
  running_softmax softmaxes[row_tiles];

  template <class Keys>
  __device__ void compute_scores(const Keys& keys) {
#pragma unroll
    for (int key = 0; key < key_tiles; ++key) {
#pragma unroll
      for (int row = 0; row < row_tiles; ++row) scores[row][key] = {};
#pragma unroll
      for (int column = 0; column < column_tiles; ++column) {
        auto right = load_right_transposed(keys.tile(key * tile_size, column * tile_size), keys.stride);
#pragma unroll
        for (int row = 0; row < row_tiles; ++row)
          add_product<T>(queries[row][column], right, scores[row][key]);
      }
    }
  }

  /// The keys begin at `first_key`, the warp's queries at `first_query`.
  __device__ void take_in_scores(int first_query, int first_key, const attention_heads& heads, float scale) {
    auto all_seen = first_key + keys_per_block <= heads.positions &&
                    (!heads.causal || first_key + keys_per_block <= first_query + 1);
#pragma unroll
    for (int row = 0; row < row_tiles; ++row) {
      if (!all_seen) hide_unseen(scores[row], first_query + row * tile_size, first_key, heads);
      auto factors = softmaxes[row].add(scores[row], scale);
#pragma unroll
      for (auto& sum : sums[row])
#pragma unroll
        for (int i = 0; i < 8; ++i) sum.values[i] *= i / 2 % 2 == 0 ? factors.x : factors.y;
    }
  }

  template <class Values>
  __device__ void add_values(const Values& values) {
#pragma unroll
    for (int key = 0; key < key_tiles; ++key) {
      operand_tile<T> probabilities[row_tiles];
#pragma unroll
      for (int row = 0; row < row_tiles; ++row) probabilities[row] = as_left<T>(scores[row][key]);
#pragma unroll
      for (int column = 0; column < column_tiles; ++column) {
        auto right = load_right(values.tile(key * tile_size, column * tile_size), values.stride);
#pragma unroll
        for (int row = 0; row < row_tiles; ++row)
          add_product<T>(probabilities[row], right, sums[row][column]);
      }
    }
  }
};

template <class T, int Width>
__global__ void __launch_bounds__(tile_threads)
    forward_kernel(attention_heads heads, const T* qkv, T* out, float* log_sum_exp) {
  using sizes = tile_sizes<T, Width>;
  forward_memory<T, Width> memory(dynamic_shared_memory<T>());
  auto block = head_block::from_last(heads, sizes::held_rows);
  auto key_rows = heads.part(qkv, block.head, 1), value_rows = heads.part(qkv, block.head, 2);
  auto first_query = block.first + warp_of_block() * sizes::warp_rows;
  auto end = heads.end_of_keys(block.first + sizes::held_rows);
  auto scale = heads.scale * log2_of_e;
  forward_warp<T, Width> warp;

  begin_rows(memory.queries, heads.part(qkv, block.head, 0), block.first, heads);
  begin_rows(memory.keys, key_rows, 0, heads);
  finish_copies();
  __syncthreads();
  load_held(memory.queries, warp.queries);
  for (int key = 0; key < end; key += keys_per_block) {
    auto seen = !heads.causal || key < first_query + sizes::warp_rows;
    begin_rows(memory.values, value_rows, key, heads);
    if (seen) warp.compute_scores(memory.keys);
    finish_copies();
    __syncthreads();  // the values are loaded, and all threads have read the keys
    if (key + keys_per_block < end) begin_rows(memory.keys, key_rows, key + keys_per_block, heads);
    if (seen) {
      warp.take_in_scores(first_query, key, heads, scale);
      warp.add_values(memory.values);
    }
    finish_copies();
    __syncthreads();  // and so with the next keys and the values
  }

  float totals[sizes::row_tiles][2];
#pragma unroll
  for (int row = 0; row < sizes::row_tiles; ++row)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      totals[row][half] = warp.softmaxes[row].total_of_row(half);
      auto query = first_query + row * tile_size + sum_row(2 * half);
      if (sum_column(0) == 0 && query < heads.positions)
        log_sum_exp[block.head * heads.positions + query] =
            (warp.softmaxes[row].largest[half] + log2f(totals[row][half])) / log2_of_e;
    }
  write_rows(
      warp.sums, [&](int row, int half) { return 1 / totals[row][half]; }, memory.queries,
      heads.out(out, block.head), block.first, heads);
}

}  // namespace

void attention_forward_on_tensor_cores(const tensor& qkv, const attention_options& options, tensor& out,
                                       tensor& log_sum_exp) {
  auto heads = heads_of(out, options, qkv);
  with_tiles(out.dtype(), heads.width, [&](auto zero, auto width) {
    using T = decltype(zero);
    launch_with_memory(out.device(), head_block::count(heads, tile_sizes<T, width>::held_rows), tile_threads,
                       forward_memory<T, width>::size_bytes, forward_kernel<T, width>, heads,
                       elements_of<T>(qkv), elements_of<T>(out), elements_of<float>(log_sum_exp));
  });
}

}  // namespace troupe::cuda
