#include "troupe/recovery/replica.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe {

std::optional<member_id> keeper_of(const view& present, member_id member) {
  if (std::ranges::find(present.members, member, &view_member::id) == present.members.end())
    throw_invalid("keeper_of", "one of the view's " + std::to_string(present.members.size()) + " members",
                  to_string(member));
  auto staying = present.staying();
  auto next = std::ranges::upper_bound(staying, member);
  if (next == staying.end()) next = staying.begin();
  if (next == staying.end() || *next == member) return {};
  return *next;
}

std::optional<member_id> copy_keeper(const job_part& part, const std::vector<job_part>& parts,
                                     const placement& placed, const hosting& hosts, const view& present) {
  auto host = host_of(placed, hosts, part.id.of);
  auto keeper = keeper_of(present, host);
  auto staying = present.staying();
  for (const auto& other : parts) {
    if (other.id == part.id || !stands_for(other.id, part)) continue;
    auto holder = host_of(placed, hosts, other.id.of);
    bool is_sent_by_it = holder == host && other.id < part.id;
    bool is_second_copy = holder != host && std::ranges::find(staying, holder) != staying.end();
    if (is_sent_by_it || is_second_copy) return {};
  }
  return keeper;
}

std::vector<member_id> kept_by(const view& present, member_id keeper) {
  std::vector<member_id> kept;
  for (const auto& one : present.members)
    if (keeper_of(present, one.id) == keeper) kept.push_back(one.id);
  return kept;
}

}  // namespace troupe
