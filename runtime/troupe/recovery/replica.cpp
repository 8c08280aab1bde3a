#include "troupe/recovery/replica.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe::recovery {

std::optional<world_rank> keeper_of(const mesh::view& present, world_rank member) {
  if (std::ranges::find(present.members, member, &mesh::view_member::rank) == present.members.end())
    throw_invalid("keeper_of", "one of the view's " + std::to_string(present.members.size()) + " members",
                  "rank " + to_string(member));
  auto staying = present.staying();
  auto next = std::ranges::upper_bound(staying, member);
  if (next == staying.end()) next = staying.begin();
  if (next == staying.end() || *next == member) return {};
  return *next;
}

std::optional<world_rank> copy_keeper(const layout::job_part& part,
                                      const std::vector<layout::job_part>& parts,
                                      const mesh::placement& placed, const mesh::hosting& hosts,
                                      const mesh::view& present) {
  auto host = host_of(placed, hosts, part.id);
  auto keeper = keeper_of(present, host);
  auto staying = present.staying();
  for (const auto& other : parts) {
    if (other.id == part.id || !stands_for(other.id, part)) continue;
    auto holder = host_of(placed, hosts, other.id);
    bool is_sent_by_it = holder == host && other.id < part.id;
    bool is_second_copy = holder != host && std::ranges::find(staying, holder) != staying.end();
    if (is_sent_by_it || is_second_copy) return {};
  }
  return keeper;
}

std::vector<world_rank> kept_by(const mesh::view& present, world_rank keeper) {
  std::vector<world_rank> kept;
  for (const auto& one : present.members)
    if (keeper_of(present, one.rank) == keeper) kept.push_back(one.rank);
  return kept;
}

}  // namespace troupe::recovery
