#include "troupe/ops/cuda/attention/attention_in_f32.cuh"
#include "troupe/ops/cuda/attention/attention_passes.hpp"

// The same algorithms as on tensor cores (attention_forward.cu, attention_backward.cu): a thread block holds
// 64 queries and streams keys, or, for the keys' gradients, the reverse. A head wider than Width is split
// over several blocks, each of which computes all scores.

namespace troupe::cuda {
namespace {

constexpr float log2_of_e = 1.44269504088896341F;

struct by_sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct by_maximum {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Of the 16 threads with the same rows.
template <class Combine>
__device__ float reduce_row(float value, Combine combine) {
#pragma unroll
  for (int distance = 8; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(~0U, value, distance));
  return value;
}

/// The online softmax of one row, to base 2.
struct running_softmax {
  float largest = -HUGE_VALF, total = 0;

  /// Adds scores, replacing them by unnormalised probabilities. Returns the factor for earlier sums.
  __device__ float add(float (&scores)[4]) {
    auto top = fmaxf(fmaxf(scores[0], scores[1]), fmaxf(scores[2], scores[3]));
    top = fmaxf(largest, reduce_row(top, by_maximum()));
    auto factor = exp2f(largest - top);
    largest = top;
    total *= factor;
#pragma unroll
    for (auto& score : scores) total += score = exp2f(score - top);
    return factor;
  }
};

template <class T, int Width>
__global__ void __launch_bounds__(square_threads, 2)
    forward_kernel(attention_heads heads, const T* qkv, T* out, float* log_sum_exp) {
  __shared__ square_memory memory;
  auto block = head_block::from_last(heads, square_rows);
  auto queries = heads.part(qkv, block.head, 0), keys = heads.part(qkv, block.head, 1),
       values = heads.part(qkv, block.head, 2);
  auto column = static_cast<int>(blockIdx.y) * Width, end = heads.end_of_keys(block.first + square_rows);
  square_scores scores;
  running_softmax softmaxes[4];
  square_sums<Width> sums;
  for (int first_key = 0; first_key < end; first_key += square_rows) {
    find_scores(memory, queries, block.first, keys, first_key, heads, scores);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        auto key = first_key + square_place::first_column() + 16 * j,
             query = block.first + square_place::first_row() + i;
        auto seen = key < heads.positions && (!heads.causal || key <= query);
        scores[i][j] = seen ? scores[i][j] * (heads.scale * log2_of_e) : -HUGE_VALF;
      }
      auto factor = softmaxes[i].add(scores[i]);
#pragma unroll
      for (auto& sum : sums.values[i]) sum *= factor;
    }
    store_weights(memory, scores);
    sums.add_rows(memory, values, first_key, column, heads);
  }

  float factors[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    auto total = reduce_row(softmaxes[i].total, by_sum());
    factors[i] = 1 / total;
    auto query = block.first + square_place::first_row() + i;
    if (column == 0 && square_place::first_column() == 0 && query < heads.positions)
      log_sum_exp[block.head * heads.positions + query] = (softmaxes[i].largest + log2f(total)) / log2_of_e;
  }
  sums.write(heads.out(out, block.head), block.first, column, heads, factors);
}

/// P and dS of a square, from the scores and from dP. `seen(i, j)` says which there are, and `sums_of(i, j)`
/// is their query's entry of row_sums.
template <class Seen, class SumsOf>
__device__ void find_gradients(float scale, const Seen& seen, const SumsOf& sums_of, square_scores& scores,
                               square_scores& dprobabilities) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float2 row_sums = sums_of(i, j);
      scores[i][j] = seen(i, j) ? exp2f(scores[i][j] * scale - row_sums.x) : 0;
      dprobabilities[i][j] = scores[i][j] * (dprobabilities[i][j] - row_sums.y);
    }
}

template <class T, int Width>
__global__ void __launch_bounds__(square_threads, square_blocks_at_once(Width))
    query_kernel(attention_heads heads, const T* dout, const T* qkv, const float2* row_sums, T* dqkv) {
  __shared__ square_memory memory;
  auto block = head_block::from_last(heads, square_rows);
  auto queries = heads.part(qkv, block.head, 0), keys = heads.part(qkv, block.head, 1),
       values = heads.part(qkv, block.head, 2), douts = heads.out(dout, block.head);
  auto column = static_cast<int>(blockIdx.y) * Width, end = heads.end_of_keys(block.first + square_rows);
  auto first_query = block.first + square_place::first_row();
  auto sums_of = [&](int i, int) {
    return row_sums[block.head * heads.positions + min(first_query + i, heads.positions - 1)];
  };
  square_scores scores, dprobabilities;
  square_sums<Width> dquery;
  for (int first_key = 0; first_key < end; first_key += square_rows) {
    find_scores(memory, queries, block.first, keys, first_key, heads, scores);
    find_scores(memory, douts, block.first, values, first_key, heads, dprobabilities);
    auto seen = [&](int i, int j) {
      return heads.sees(first_query + i, first_key + square_place::first_column() + 16 * j);
    };
    find_gradients(heads.scale * log2_of_e, seen, sums_of, scores, dprobabilities);
    store_weights(memory, dprobabilities);
    dquery.add_rows(memory, keys, first_key, column, heads);
  }
  dquery.write(heads.part(dqkv, block.head, 0), block.first, column, heads,
               {heads.scale, heads.scale, heads.scale, heads.scale});
}

template <class T, int Width>
__global__ void __launch_bounds__(square_threads, square_blocks_at_once(Width))
    key_kernel(attention_heads heads, const T* dout, const T* qkv, const float2* row_sums, T* dqkv) {
  __shared__ square_memory memory;
  auto block = head_block::in_order(heads, square_rows);
  auto queries = heads.part(qkv, block.head, 0), keys = heads.part(qkv, block.head, 1),
       values = heads.part(qkv, block.head, 2), douts = heads.out(dout, block.head);
  auto column = static_cast<int>(blockIdx.y) * Width;
  auto first_key = block.first + square_place::first_row();
  square_scores scores, dprobabilities;
  square_sums<Width> dkey, dvalue;
  for (int first = heads.causal ? block.first : 0; first < heads.positions; first += square_rows) {
    find_scores(memory, keys, block.first, queries, first, heads, scores);
    find_scores(memory, values, block.first, douts, first, heads, dprobabilities);
    auto query = [&](int j) { return first + square_place::first_column() + 16 * j; };
    auto sums_of = [&](int, int j) {
      return row_sums[block.head * heads.positions + min(query(j), heads.positions - 1)];
    };
    find_gradients(
        heads.scale * log2_of_e, [&](int i, int j) { return heads.sees(query(j), first_key + i); }, sums_of,
        scores, dprobabilities);
    store_weights(memory, scores);
    dvalue.add_rows(memory, douts, first, column, heads);
    store_weights(memory, dprobabilities);
    dkey.add_rows(memory, queries, first, column, heads);
  }
  dkey.write(heads.part(dqkv, block.head, 1), block.first, column, heads,
             {heads.scale, heads.scale, heads.scale, heads.scale});
  dvalue.write(heads.part(dqkv, block.head, 2), block.first, column, heads, {1, 1, 1, 1});
}

}  // namespace

void attention_forward_in_f32(const tensor& qkv, const attention_options& options, tensor& out,
                              tensor& log_sum_exp) {
  auto heads = heads_of(out, options, qkv);
  with_squares(out.dtype(), heads.width, [&](auto zero, auto width) {
    using T = decltype(zero);
    launch(out.device(), square_blocks(heads, width), square_threads, forward_kernel<T, width>, heads,
           elements_of<T>(qkv), elements_of<T>(out), elements_of<float>(log_sum_exp));
  });
}

void attention_backward_in_f32(const tensor& dout, const tensor& qkv, const tensor& row_sums,
                               const attention_options& options, tensor& dqkv) {
  auto heads = heads_of(dout, options, qkv, dqkv);
  with_squares(dout.dtype(), heads.width, [&](auto zero, auto width) {
    using T = decltype(zero);
    auto queue = [&](auto kernel) {
      launch(dout.device(), square_blocks(heads, width), square_threads, kernel, heads, elements_of<T>(dout),
             elements_of<T>(qkv), elements_of<float2>(row_sums), elements_of<T>(dqkv));
    };
    queue(query_kernel<T, width>);
    queue(key_kernel<T, width>);
  });
}

}  // namespace troupe::cuda
