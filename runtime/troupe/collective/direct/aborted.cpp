#include "troupe/collective/direct/aborted.hpp"

#include "troupe/collective/post_mortem.hpp"

namespace troupe::direct {

void throw_if_aborted(const board& at, const group_description& group) {
  if (!at.is_aborted()) return;
  auto end = at.aborted_by();
  last_words words{.sequence = end.sequence, .gave_up = end.kind, .ranks = end.ranks, .cause = end.cause};
  throw post_mortem(group).given_up(end.member, words);
}

}  // namespace troupe::direct
