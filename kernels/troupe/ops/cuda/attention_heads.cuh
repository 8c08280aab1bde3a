#pragma once
#include <algorithm>

#include "troupe/ops/attention.hpp"
#include "troupe/ops/cuda/elements.cuh"
#include "troupe/ops/cuda/launch.cuh"

namespace troupe::cuda {

/// One head's rows, one for each position, that lie `stride` elements apart.
template <class T>
struct head_rows {
  T* first;
  std::int64_t stride;
  __device__ T* row(int position) const { return first + position * stride; }
};

/// Where the heads of B samples lie: qkv [B, T, 3, H, D]; out and dout [B, T, H, D]; log_sum_exp and delta
/// [B, H, T].
struct attention_heads {
  std::int64_t count;  ///< B H
  int positions, per_sample, width;
  float scale;
  bool causal;
  bool are_packs;  ///< all rows begin and end where a pack may

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
  /// Behind the last key that a query before `end` sees.
  __device__ int end_of_keys(int end) const { return causal ? min(end, positions) : positions; }
};

/// Throws std::invalid_argument for more positions than the kernels count: blocks of rows may end behind the
/// last.
template <class... Tensors>
attention_heads heads_of(const tensor& out, const attention_options& options, const Tensors&... others) {
  const auto& extents = out.shape();
  auto width = extents[2] / options.num_heads;
  constexpr auto most_positions = (std::int64_t{1} << 31) - 1024;
  if (extents[1] > most_positions)
    throw_invalid("attention", "at most 2^31 - 1024 positions on a GPU", std::to_string(extents[1]));
  auto are_packs = width * static_cast<std::int64_t>(size_bytes(out.dtype())) % 16 == 0;
  return {extents[0] * options.num_heads,
          static_cast<int>(extents[1]),
          options.num_heads,
          static_cast<int>(width),
          options.scale,
          options.causal,
          ((are_packs && is_aligned(out)) && ... && is_aligned(others))};
}

/// Which of a head's blocks of `size` rows a block of threads has. Those of one head follow each other, so
/// that what they all read stays in the cache.
struct head_block {
  std::int64_t head;
  int first;  ///< row

  static unsigned count(const attention_heads& heads, int size) {
    return num_blocks(heads.count * blocks_for(heads.positions, static_cast<unsigned>(size)));
  }
  __device__ static head_block in_order(const attention_heads& heads, int size) {
    auto per_head = (heads.positions + size - 1) / size;
    return {blockIdx.x / per_head, static_cast<int>(blockIdx.x % per_head) * size};
  }
  /// The last first: with a causal mask, the longest first.
  __device__ static head_block from_last(const attention_heads& heads, int size) {
    auto per_head = (heads.positions + size - 1) / size;
    return {blockIdx.x / per_head, (per_head - 1 - static_cast<int>(blockIdx.x % per_head)) * size};
  }
};

}  // namespace troupe::cuda
