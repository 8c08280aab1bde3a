#include "troupe/mesh/view.hpp"

namespace troupe::mesh {

std::vector<world_rank> view::with_role(member_role role) const {
  std::vector<world_rank> found;
  for (const auto& one : members)
    if (one.role == role) found.push_back(one.rank);
  return found;
}

std::vector<world_rank> view::staying() const {
  std::vector<world_rank> found;
  for (const auto& one : members)
    if (one.role != member_role::leaving) found.push_back(one.rank);
  return found;
}

view view_of_world(int world_size, std::uint64_t generation) {
  view whole{generation, {}};
  for (int rank = 0; rank < world_size; ++rank) whole.members.push_back({rank, member_role::active});
  return whole;
}

}  // namespace troupe::mesh
