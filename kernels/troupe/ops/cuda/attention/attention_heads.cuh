#pragma once
#include <algorithm>

#include "troupe/ops/attention.hpp"
#include "troupe/ops/cuda/loops/elements.cuh"
#include "troupe/ops/cuda/loops/launch.cuh"

namespace troupe::cuda {

/// One head's rows, one for each position, that lie `stride` elements apart.
template <class T>
struct head_rows {
  T* first;
  std::int64_t stride;
  __device__ T* row(int position) const { return first + position * stride; }
};

/// The layout of the heads of B samples: qkv [B, T, 3, H, D]; out and dout [B, T, H, D]; log_sum_exp and
/// delta [B, H, T].
struct attention_heads {
  std::int64_t count;  ///< heads of all samples: B H
  int positions, per_sample, width;
  float scale;
  bool causal;
  bool rows_aligned;  ///< whether all rows begin and end at multiples of 16 bytes

  __device__ std::int64_t channels() const { return static_cast<std::int64_t>(per_sample) * width; }
  /// Queries (part 0), keys (1) or values (2).
  template <class T>
  __device__ head_rows<T> part(T* qkv, std::int64_t head, int part) const {
    auto row = head / per_sample * positions * 3 + part, number = head % per_sample;
    return {qkv + row * channels() + number * width, 3 * channels()};
  }
  template <class T>
  __device__ head_rows<T> out(T* all, std::int64_t head) const {
    return {all + head / per_sample * positions * channels() + head % per_sample * width, channels()};
  }

  __device__ bool sees(int query, int key) const {
    return query < positions && key < positions && (!causal || key <= query);
  }
  /// One past the last key to which a query before `end` attends.
  __device__ int end_of_keys(int end) const { return causal ? min(end, positions) : positions; }
};

/// Throws std::invalid_argument if the number of positions, rounded up to blocks of rows, exceeds 32 bits.
template <class... Tensors>
attention_heads heads_of(const tensor& out, const attention_options& options, const Tensors&... others) {
  const auto& extents = out.shape();
  auto width = extents[2] / options.num_heads;
  constexpr auto max_positions = (std::int64_t{1} << 31) - 1024;
  if (extents[1] > max_positions)
    throw_invalid("attention", "at most 2^31 - 1024 positions on a GPU", std::to_string(extents[1]));
  auto rows_aligned = width * static_cast<std::int64_t>(size_bytes(out.dtype())) % 16 == 0;
  return {extents[0] * options.num_heads,
          static_cast<int>(extents[1]),
          options.num_heads,
          static_cast<int>(width),
          options.scale,
          options.causal,
          ((rows_aligned && is_aligned(out)) && ... && is_aligned(others))};
}

/// The block of `size` rows of a head that a thread block computes. Blocks of one head are consecutive, so
/// that the data they share stays in the cache.
struct head_block {
  std::int64_t head;
  int first;  ///< the block's first row

  static unsigned count(const attention_heads& heads, int size) {
    return num_blocks(heads.count * blocks_for(heads.positions, static_cast<unsigned>(size)));
  }
  __device__ static head_block in_order(const attention_heads& heads, int size) {
    auto per_head = (heads.positions + size - 1) / size;
    return {blockIdx.x / per_head, static_cast<int>(blockIdx.x % per_head) * size};
  }
  /// In descending order: with a causal mask the longest blocks come first.
  __device__ static head_block from_last(const attention_heads& heads, int size) {
    auto per_head = (heads.positions + size - 1) / size;
    return {blockIdx.x / per_head, (per_head - 1 - static_cast<int>(blockIdx.x % per_head)) * size};
  }
};

}  // namespace troupe::cuda
