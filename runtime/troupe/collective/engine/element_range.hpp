#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/collective/operation.hpp"

namespace troupe {

/// Consecutive elements of a tensor.
struct element_range {
  std::int64_t first = 0, count = 0;
};

/// The range of one member when `total` elements are divided among all, nearly equally, in whole cache lines.
inline element_range range_of_member(std::int64_t total, std::size_t element_bytes, int num_members,
                                     int member) {
  auto line = static_cast<std::int64_t>(64 / element_bytes);
  auto lines = (total + line - 1) / line;
  auto begin = std::min(total, lines * member / num_members * line);
  auto end = std::min(total, lines * (member + 1) / num_members * line);
  return {begin, end - begin};
}

/// The part of one member in an operation with parts.
inline element_range part_of(const collective_operation& what, int member) {
  return {part_begin(what, member), what.parts[static_cast<std::size_t>(member)]};
}

}  // namespace troupe
