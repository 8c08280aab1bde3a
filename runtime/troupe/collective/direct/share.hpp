#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/collective/direct/meeting.hpp"
#include "troupe/collective/operation.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::direct {

/// Elements that one member works on.
struct share {
  std::int64_t first = 0, count = 0;
};

/// Of `total` elements, nearly equal for all, in multiples of a cache line.
inline share share_of(std::int64_t total, std::size_t element_bytes, int num_members, int member) {
  auto line = static_cast<std::int64_t>(64 / element_bytes);
  auto lines = (total + line - 1) / line;
  auto begin = std::min(total, lines * member / num_members * line);
  auto end = std::min(total, lines * (member + 1) / num_members * line);
  return {begin, end - begin};
}

/// Part `member` of the operation.
inline share part_of(const collective_operation& what, int member) {
  return {part_begin(what, member), what.parts[static_cast<std::size_t>(member)]};
}

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
