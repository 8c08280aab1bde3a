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

void require_sizes(const char* function, std::span<const std::int64_t> sizes, std::size_t num_shards) {
  if (num_shards == 0) throw_invalid(function, "at least 1 shard", "0");
  if (auto negative = std::ranges::find_if(sizes, [](std::int64_t size) { return size < 0; });
      negative != sizes.end())
    throw_invalid(function, "tensors of 0 or more elements", std::to_string(*negative));
}

/// The place of a cut that is nearest to `wanted`.
std::int64_t nearest_cut(std::span<const std::int64_t> sizes, std::int64_t wanted,
                         shard_granularity granularity) {
  std::int64_t first = 0;
  for (auto size : sizes) {
    if (wanted >= first + size) {
      first += size;
      continue;
    }
    auto step = granularity == shard_granularity::blocks ? shard_block : size;
    auto before = first + (wanted - first) / step * step, after = std::min(before + step, first + size);
    return wanted - before <= after - wanted ? before : after;
  }
  return first;
}

}  // namespace

std::vector<std::int64_t> cut_into_shards(std::span<const std::int64_t> sizes,
                                          std::span<const std::int64_t> held, shard_granularity granularity) {
  require_sizes("cut_into_shards", sizes, held.size());
  auto total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  auto num_shards = static_cast<std::int64_t>(held.size());
  auto even = (std::accumulate(held.begin(), held.end(), total) + num_shards - 1) / num_shards;
  double wanted = 0, wanted_by_all = 0;
  for (auto each : held) wanted_by_all += static_cast<double>(std::max(even - each, std::int64_t{0}));
  std::vector<std::int64_t> parts;
  std::int64_t first = 0;
  for (auto each : held) {
    wanted += static_cast<double>(std::max(even - each, std::int64_t{0}));
    auto place = static_cast<std::int64_t>(static_cast<double>(total) * (wanted / wanted_by_all));
    auto is_last = std::ssize(parts) + 1 == num_shards;
    auto end = is_last || total == 0 ? total : std::max(first, nearest_cut(sizes, place, granularity));
    parts.push_back(end - first);
    first = end;
  }
  return parts;
}

std::vector<shard_piece> assign_to_shards(std::span<const std::int64_t> sizes, int num_shards,
                                          shard_granularity granularity) {
  if (num_shards < 1) throw_invalid("assign_to_shards", "at least 1 shard", std::to_string(num_shards));
  require_sizes("assign_to_shards", sizes, static_cast<std::size_t>(num_shards));
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
