#include "troupe/mesh/view.hpp"

namespace troupe::mesh {

std::string to_string(member_id shown) { return "rank " + std::to_string(shown.rank); }

std::vector<member_id> view::with_role(member_role role) const {
  std::vector<member_id> found;
  for (const auto& one : members)
    if (one.role == role) found.push_back(one.id);
  return found;
}

std::vector<member_id> view::staying() const {
  std::vector<member_id> found;
  for (const auto& one : members)
    if (one.role != member_role::leaving) found.push_back(one.id);
  return found;
}

view view_of_world(int world_size, std::uint64_t generation) {
  view whole{generation, {}};
  for (int rank = 0; rank < world_size; ++rank) whole.members.push_back({{rank}, member_role::active});
  return whole;
}

}  // namespace troupe::mesh
