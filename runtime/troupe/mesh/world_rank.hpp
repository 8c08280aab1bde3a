#pragma once
#include <string>
#include <type_traits>

namespace troupe {

class member_index;

/// The rank of a process in the World: what launchers, errors and logs call "rank". It names a stable seat: a
/// process that replaces a lost one has the same rank. Which ranks occur may differ between generations, and
/// there may be gaps. It is never an index of a view's or group's members.
///
/// It converts from and to int, so that `{0, 2}` is a list of ranks, and `rank % 2`, `parts[rank]` and
/// `one < other` are what they are with an int. The index in a group is another number and of another type,
/// member_index: neither converts to the other, and they do not compare.
class world_rank {
 public:
  constexpr world_rank() = default;
  constexpr world_rank(int value) : value_(value) {}
  world_rank(member_index) = delete;  // the rank of a member: group_description::rank_of(member)

  constexpr operator int() const { return value_; }
  constexpr int value() const { return value_; }

 private:
  int value_ = 0;
};

/// "2"
inline std::string to_string(world_rank rank) { return std::to_string(rank.value()); }

}  // namespace troupe

/// What algorithms of std::ranges ask for to compare the two: `std::ranges::find(ranks, 3)`.
template <>
struct std::common_type<troupe::world_rank, int> {
  using type = int;
};
template <>
struct std::common_type<int, troupe::world_rank> {
  using type = int;
};
