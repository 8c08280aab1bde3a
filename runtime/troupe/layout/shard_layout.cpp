#include "troupe/layout/shard_layout.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe::layout {
namespace {

class shard_assigner {
 public:
  explicit shard_assigner(int num_shards) : held_(static_cast<std::size_t>(num_shards)) {}

  void assign_whole(std::size_t tensor, std::int64_t size) {
    give({tensor, 0, size, fewest_first().front()});
  }

  /// Equally many blocks to each shard, and one more to those with the fewest elements. The last block, which
  /// may be short, goes to the last of these, or else to the shard with the most elements.
  void assign_blocks(std::size_t tensor, std::int64_t size) {
    auto num_shards = static_cast<std::int64_t>(held_.size());
    auto num_blocks = (size + shard_block - 1) / shard_block;
    auto num_extra = num_blocks % num_shards;
    auto order = fewest_first();
    auto with_last = order.begin() + (num_extra > 0 ? num_extra : num_shards) - 1;
    std::int64_t first = 0;
    auto assign = [&](std::vector<int>::iterator at) {
      auto extra = at - order.begin() < num_extra ? 1 : 0;
      auto end = std::min(size, first + (num_blocks / num_shards + extra) * shard_block);
      if (end > first) give({tensor, first, end - first, *at});
      first = end;
    };
    for (auto at = order.begin(); at != order.end(); ++at)
      if (at != with_last) assign(at);
    assign(with_last);
  }

  void give(const shard_piece& piece) {
    held_[static_cast<std::size_t>(piece.shard)] += piece.count;
    pieces_.push_back(piece);
  }
  std::vector<shard_piece> take() { return std::move(pieces_); }

 private:
  std::vector<int> fewest_first() const {
    std::vector<int> order(held_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [this](int shard) { return held_[static_cast<std::size_t>(shard)]; });
    return order;
  }

  std::vector<std::int64_t> held_;  ///< [shard] elements
  std::vector<shard_piece> pieces_;
};

}  // namespace

std::vector<shard_piece> assign_to_shards(std::span<const std::int64_t> sizes, int num_shards,
                                          shard_granularity granularity) {
  if (num_shards < 1) throw_invalid("assign_to_shards", "at least 1 shard", std::to_string(num_shards));
  if (auto negative = std::ranges::find_if(sizes, [](std::int64_t size) { return size < 0; });
      negative != sizes.end())
    throw_invalid("assign_to_shards", "tensors of 0 or more elements", std::to_string(*negative));
  shard_assigner assigned(num_shards);
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto is_whole = [&](std::size_t tensor) {
    return granularity == shard_granularity::tensors || sizes[tensor] <= shard_block;
  };
  // What cannot be cut comes last, the largest first: it makes up for what blocks have left uneven.
  std::ranges::stable_sort(order, {}, [&](std::size_t tensor) {
    return std::pair(is_whole(tensor), is_whole(tensor) ? -sizes[tensor] : 0);
  });
  for (auto tensor : order) {
    if (sizes[tensor] == 0)
      assigned.give({tensor, 0, 0, 0});
    else if (is_whole(tensor))
      assigned.assign_whole(tensor, sizes[tensor]);
    else
      assigned.assign_blocks(tensor, sizes[tensor]);
  }
  auto pieces = assigned.take();
  std::ranges::sort(pieces, {}, [](const shard_piece& one) { return std::pair(one.tensor, one.first); });
  return pieces;
}

}  // namespace troupe::layout
