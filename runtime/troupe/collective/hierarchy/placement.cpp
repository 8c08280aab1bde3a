#include "troupe/collective/hierarchy/placement.hpp"

#include <algorithm>

namespace troupe::hierarchy {

placement::placement(const std::vector<std::string>& hosts) {
  std::vector<std::string> known;
  for (int member = 0; member < static_cast<int>(hosts.size()); ++member) {
    const auto& name = hosts[static_cast<std::size_t>(member)];
    auto host = std::ranges::find(known, name) - known.begin();
    if (host == static_cast<std::ptrdiff_t>(known.size())) {
      known.push_back(name);
      members_.emplace_back();
    }
    auto& members = members_[static_cast<std::size_t>(host)];
    hosts_.push_back(static_cast<int>(host));
    local_indices_.push_back(static_cast<int>(members.size()));
    members.push_back(member);
  }
  for (const auto& members : members_) nodes_.push_back(nodes_within(members, num_members()));
}

int placement::sender_for(int member, int host) const {
  const auto& members = members_on(host);
  return members[static_cast<std::size_t>(local_index_of(member)) % members.size()];
}

}  // namespace troupe::hierarchy
