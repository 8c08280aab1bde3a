#pragma once
#include <cstdint>

#include "troupe/collective/direct/meeting.hpp"
#include "troupe/collective/share.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::direct {

/// What is larger than the caches goes around them.
inline store_kind store_for(std::size_t size_bytes) {
  return size_bytes >= (std::size_t{8} << 20) ? store_kind::streaming : store_kind::cached;
}

/// What is copied from where another core wrote it, or for another core to read: taking lines over that
/// others have in their caches, one after the other, costs more than going around the caches.
inline store_kind store_for_fetched(std::size_t size_bytes) {
  return size_bytes >= (std::size_t{1} << 16) ? store_kind::streaming : store_kind::cached;
}

/// Whether `count` elements fit beside a note.
inline bool is_small(const meeting& at, std::int64_t count) {
  return static_cast<std::size_t>(count) * at.element_bytes() <= board::small_bytes;
}

}  // namespace troupe::direct
