#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace troupe::layout {

/// Consecutive elements of a tensor that one shard owns.
struct shard_piece {
  std::size_t tensor = 0;  ///< index
  std::int64_t first = 0, count = 0;
  int shard = 0;
  bool operator==(const shard_piece&) const = default;
};

enum class shard_granularity {
  blocks,  ///< a shard has whole blocks of a tensor
  tensors  ///< a shard has whole tensors
};

/// Elements of a block: as many as those whose squares are added up by themselves (block_squares).
inline constexpr std::int64_t shard_block = std::int64_t{1} << 14;

/// Assigns the elements of tensors to `num_shards` shards. `sizes`: the elements of each tensor. Every shard
/// has a part of every tensor with enough blocks, so that all shards work at each tensor at the same time;
/// what is left goes to those with the fewest elements. No two differ by more than the largest thing that is
/// assigned as a whole: a block, or a tensor of fewer elements (granularity `tensors`: any tensor).
/// The pieces come in the order of the tensors, those of one tensor in that of its elements; each shard has
/// at most one of a tensor. A tensor without elements is a piece of shard 0. A pure function: equal in all
/// processes. Throws std::invalid_argument for no shards or a negative size.
std::vector<shard_piece> assign_to_shards(std::span<const std::int64_t> sizes, int num_shards,
                                          shard_granularity granularity);

/// Cuts tensors that lie one after the other into consecutive parts, one for each shard in order.
/// - `sizes`: the elements of each tensor, with those between it and the next
/// - `held`: the elements that each shard has of what was cut before
///
/// The parts make up for differences in `held`. A cut lies between two tensors or between two blocks of one
/// (granularity `tensors`: between two tensors), as near as possible to where all shards would have equally
/// many elements. A part may be empty. Returns the elements of each part. A pure function: equal in all
/// processes. Throws std::invalid_argument for no shards or a negative size.
std::vector<std::int64_t> cut_into_shards(std::span<const std::int64_t> sizes,
                                          std::span<const std::int64_t> held, shard_granularity granularity);

}  // namespace troupe::layout
