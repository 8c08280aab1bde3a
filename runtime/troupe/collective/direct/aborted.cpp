#include "troupe/collective/direct/aborted.hpp"

namespace troupe::direct {

void throw_if_aborted(const board& at, const group_description& group) {
  if (!at.is_aborted()) return;
  auto end = at.aborted_by();
  auto rank = group.ranks[static_cast<std::size_t>(end.member)];
  if (end.ranks.empty()) end.ranks.push_back(rank);
  throw collective_error(end.kind, group.name, end.sequence, end.ranks,
                         "group " + group.name + ": rank " + std::to_string(rank) + " gave up: " + end.cause);
}

}  // namespace troupe::direct
