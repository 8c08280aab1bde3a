#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::mesh {

/// A member of a job: a process, by its rank in the world. One that replaces a lost process is the same
/// member. No number of a device: hosting says which devices a member has.
struct member_id {
  int rank = 0;
  auto operator<=>(const member_id&) const = default;
};

/// "rank 2"
std::string to_string(member_id shown);

/// active: may host devices. spare: keeps copies and is ready to become active. leaving: is about to go and
/// gets nothing new.
enum class member_role : std::uint8_t { active = 1, spare = 2, leaving = 3 };

struct view_member {
  member_id id;
  member_role role = member_role::active;
  bool operator==(const view_member&) const = default;
};

/// The members of one generation, in ascending order. A set with roles: which numbers occur, and how many,
/// may differ between generations.
struct view {
  std::uint64_t generation = 0;
  std::vector<view_member> members;

  std::vector<member_id> with_role(member_role role) const;
  /// Active ones and spares: those whose memory outlives the view.
  std::vector<member_id> staying() const;
  bool operator==(const view&) const = default;
};

/// The view of a whole world: members 0 to world_size - 1, all active.
view view_of_world(int world_size, std::uint64_t generation = 0);

}  // namespace troupe::mesh
