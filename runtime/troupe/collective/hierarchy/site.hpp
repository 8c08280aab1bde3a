#pragma once
#include <span>
#include <vector>

#include "troupe/collective/direct/meeting.hpp"
#include "troupe/collective/hierarchy/placement.hpp"
#include "troupe/collective/network/conversation.hpp"

namespace troupe::hierarchy {

/// One member's part in one call of a group whose members are on several hosts, some on the same: it meets
/// those of its host (its neighbours) in memory, and exchanges messages with the others.
struct site {
  direct::meeting near;
  network::conversation far;
  const placement& where;

  const collective_operation& what() const { return far.what(); }
  int member() const { return far.member(); }
  int host() const { return where.host_of(member()); }
  int place() const { return where.place_of(member()); }
  int num_neighbours() const { return near.num_members(); }  ///< with this member
  std::size_t bytes_of(std::int64_t count) const {
    return static_cast<std::size_t>(count) * far.element_bytes();
  }
};

/// Which of a call's members leave bytes with their neighbours: what fits beside a note.
bool fits_beside_notes(const site& at, std::int64_t count);

/// The bytes of what a host sends of `count` elements that are reduced: one after the other its nodes.
std::size_t bytes_of_nodes(const site& at, int host, std::int64_t count);
/// Reduces the nodes of this host from the inputs of the neighbours, by place.
void reduce_own_nodes(const site& at, std::span<const std::byte* const> inputs, std::int64_t count,
                      std::byte* nodes);
/// Reduces the neighbours' inputs, by place, together with the nodes of the other hosts, by host.
void reduce_all(const site& at, std::span<const std::byte* const> inputs,
                std::span<const std::byte* const> nodes, std::int64_t count,
                std::span<std::byte* const> outputs);

}  // namespace troupe::hierarchy
