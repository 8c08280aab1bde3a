#pragma once
#include <numeric>

#include "troupe/collective/hierarchy/flow.hpp"

namespace troupe::hierarchy {

inline std::vector<int> all_hosts(const site& at) {
  std::vector<int> hosts(static_cast<std::size_t>(at.where.num_hosts()));
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

/// All neighbours, this member first.
inline std::vector<int> all_places(const site& at) {
  std::vector<int> places;
  for (int i = 0; i < at.num_neighbours(); ++i) places.push_back((at.place() + i) % at.num_neighbours());
  return places;
}

inline division divided(const site& at, const std::vector<share>& takes) {
  return {at.where, takes, {at.far.element_bytes(), at.far.sizes().block}};
}

/// What each member of a call with parts takes: its own part.
inline std::vector<share> own_parts(const site& at) {
  std::vector<share> parts;
  for (int i = 0; i < at.where.num_members(); ++i) parts.push_back(part_of(at.what(), i));
  return parts;
}

}  // namespace troupe::hierarchy
