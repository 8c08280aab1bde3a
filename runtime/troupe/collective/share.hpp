#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/collective/operation.hpp"

namespace troupe {

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

}  // namespace troupe
