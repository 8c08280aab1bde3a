#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "troupe/mesh/world_rank.hpp"

namespace troupe {

/// The index of a member in its group, 0 to n-1, in the order of group_description::ranks: what roots and
/// peers of a communicator's calls are, what NCCL and MPI call the rank in a communicator. It converts from
/// and to int as a world_rank does.
class member_index {
 public:
  constexpr member_index() = default;
  constexpr member_index(int value) : value_(value) {}
  member_index(world_rank) = delete;  // the member of a rank: group_description::member_of(rank)

  constexpr operator int() const { return value_; }

 private:
  int value_ = 0;
};

// They would be compared as ints. Templates, which take an int for neither; without concepts, since clang 16
// looks at those only after it has refused an operator of two pointers.
template <class Rank, class Member>
using if_rank_and_member =
    std::enable_if_t<std::is_same_v<Rank, world_rank> && std::is_same_v<Member, member_index>>;
template <class Rank, class Member, class = if_rank_and_member<Rank, Member>>
bool operator==(Rank, Member) = delete;
template <class Rank, class Member, class = if_rank_and_member<Rank, Member>>
std::strong_ordering operator<=>(Rank, Member) = delete;

/// The members of a group. Errors name their ranks.
struct group_description {
  std::string name = "default";
  std::vector<world_rank> ranks;  ///< by member, distinct
  member_index member = 0;        ///< index of this process in `ranks`
  /// By member: which process of its rank it is (process_table). Empty: the first one of each.
  std::vector<std::uint32_t> incarnations = {};
  /// Of the World in which the group is made (process_table); 0: of no World. Groups of different ones share
  /// no connections.
  std::uint64_t generation = 0;

  int size() const { return static_cast<int>(ranks.size()); }
  std::uint32_t incarnation_of(member_index member) const {
    return incarnations.empty() ? 0 : incarnations[static_cast<std::size_t>(member)];
  }
  world_rank rank_of(member_index member) const { return ranks[static_cast<std::size_t>(member)]; }
  /// Nothing if the process of this rank is no member.
  std::optional<member_index> member_of(world_rank rank) const {
    auto at = std::ranges::find(ranks, rank);
    if (at == ranks.end()) return {};
    return static_cast<int>(at - ranks.begin());
  }
  /// Name and members, with which the keys of this group in a store begin. It does not grow with the number
  /// of members: more than a few are a hash.
  std::string key() const;
};

}  // namespace troupe
