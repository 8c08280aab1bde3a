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

std::vector<member_id> kept_by(const view& present, member_id keeper) {
  std::vector<member_id> kept;
  for (const auto& one : present.members)
    if (keeper_of(present, one.id) == keeper) kept.push_back(one.id);
  return kept;
}

}  // namespace troupe
