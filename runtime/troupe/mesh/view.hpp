#pragma once
#include <cstdint>
#include <vector>

#include "troupe/mesh/world_rank.hpp"

namespace troupe::mesh {

/// active: may host devices. spare: keeps copies and is ready to become active. leaving: is about to go and
/// gets nothing new.
enum class member_role : std::uint8_t { active = 1, spare = 2, leaving = 3 };

/// A process by its rank. No number of a device: hosting says which devices a member has.
struct view_member {
  world_rank rank;
  member_role role = member_role::active;
  bool operator==(const view_member&) const = default;
};

/// The members of one generation, in ascending order. A set with roles: which numbers occur, and how many,
/// may differ between generations.
struct view {
  std::uint64_t generation = 0;
  std::vector<view_member> members;

  std::vector<world_rank> with_role(member_role role) const;
  /// Active ones and spares: those whose memory outlives the view.
  std::vector<world_rank> staying() const;
  bool operator==(const view&) const = default;
};

/// The view of a whole world: members 0 to world_size - 1, all active.
view view_of_world(int world_size, std::uint64_t generation = 0);

}  // namespace troupe::mesh
