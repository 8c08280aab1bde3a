#include "troupe/gatherer/kept_tensors.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

/// A process alone has nobody to keep for.
bool kept_tensors::is_mine(std::uint32_t place) const {
  if (world_size_ == 1) return false;
  auto first = static_cast<int>(place % static_cast<std::uint32_t>(world_size_));
  return rank_ == first || rank_ == (first + 1) % world_size_;
}

void kept_tensors::add(std::uint32_t call, const by_place& tensors) {
  if (std::ranges::find(calls_, call, &kept_call::call) != calls_.end()) return;
  kept_call added{call, {}, 0};
  for (const auto& [place, value] : tensors) {
    if (!is_mine(place)) continue;
    added.tensors.emplace(place, value);
    added.size_bytes += value.size_bytes();
  }
  if (added.tensors.empty()) return;
  size_bytes_ += added.size_bytes;
  // A process that was started again takes older calls after newer ones.
  auto behind = std::ranges::upper_bound(calls_, call, {}, &kept_call::call);
  calls_.insert(behind, std::move(added));
  while (size_bytes_ > limit_bytes_ && calls_.size() > 1) {
    size_bytes_ -= calls_.front().size_bytes;
    calls_.pop_front();
  }
}

kept_tensors::by_place kept_tensors::find(std::uint32_t call) const {
  auto found = std::ranges::find(calls_, call, &kept_call::call);
  return found == calls_.end() ? by_place() : found->tensors;
}

}  // namespace troupe
