#include "troupe/gatherer/gathered_cache.hpp"

#include <algorithm>
#include <utility>

namespace troupe::actors::gatherer {

/// Whether this rank caches tensor `index`. In a job of one process there is no process to cache for.
bool gathered_cache::is_mine(std::uint32_t index) const {
  if (world_size_ == 1) return false;
  auto first = static_cast<int>(index % static_cast<std::uint32_t>(world_size_));
  return rank_ == first || rank_ == (first + 1) % world_size_;
}

void gathered_cache::add(std::uint32_t call, const by_index& tensors) {
  if (!find(call).empty()) return;
  cached_call added{call, {}, 0};
  for (const auto& [index, value] : tensors) {
    if (!is_mine(index)) continue;
    added.tensors.emplace(index, value);
    added.size_bytes += value.size_bytes() + tensor_overhead_bytes;
  }
  if (added.tensors.empty()) return;
  size_bytes_ += added.size_bytes;
  // A process that was started again takes older calls after newer ones.
  auto behind = std::ranges::upper_bound(calls_, call, {}, &cached_call::call);
  calls_.insert(behind, std::move(added));
  while (size_bytes_ > limit_bytes_ && calls_.size() > 1) {
    size_bytes_ -= calls_.front().size_bytes;
    calls_.pop_front();
  }
}

gathered_cache::by_index gathered_cache::find(std::uint32_t call) const {
  auto found = std::ranges::lower_bound(calls_, call, {}, &cached_call::call);
  return found == calls_.end() || found->call != call ? by_index() : found->tensors;
}

}  // namespace troupe::actors::gatherer
