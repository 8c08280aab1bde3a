#pragma once
#include <optional>
#include <string>
#include <vector>

#include "troupe/collective/backend.hpp"
#include "troupe/collective/call.hpp"
#include "troupe/collective/group.hpp"
#include "troupe/collective/last_words.hpp"

namespace troupe {

/// The call of one member that failed.
struct failed_call {
  const call_signature& signature;
  std::uint64_t sequence;
};

/// What the members of a group said, by member; nothing of those who say nothing.
using members_words = std::vector<std::optional<last_words>>;

/// From what the members of a group say and are seen to do to what calls fail with, alike for all backends.
class post_mortem {
 public:
  /// `group` outlives it.
  explicit post_mortem(const group_description& group) : group_(group) {}

  /// Where members are. Behind is who is awaited, by this member or by one that speaks, and says nothing, or
  /// that it waits for nobody. (A member that has done its part and computes now says nothing either, but
  /// nobody waits for it.)
  std::vector<member_state> examine(const members_words& words) const;

  /// A call did not end in time.
  collective_error timed_out(const call& late, const std::vector<member_state>& states,
                             const std::string& recent_calls) const;
  /// This member does not want a call any more.
  collective_error cancelled(const failed_call& unwanted) const;
  /// Member `from` gave up.
  collective_error given_up(int from, const last_words& words) const;
  /// Member `member` has ended: `how`, "the process of rank 3 has ended"; `doing`: what it did before.
  collective_error lost(const failed_call& of, int member, const std::string& how,
                        const std::string& doing) const;
  /// Members made different calls.
  collective_error mismatch(const failed_call& own, int other, const call_signature& theirs) const;
  /// A message of `from` was another than expected.
  collective_error wrong_message(const failed_call& expected, int from, const call_signature& theirs) const;
  /// The library below refused, and said `problem`: what is known by the others' words.
  collective_error refused(const failed_call& of, const std::string& problem,
                           const members_words& words) const;

  /// This member cannot go on, whatever the others do.
  collective_error failed_here(const failed_call& of, const std::string& problem) const;

  int rank_of(int member) const { return group_.ranks[static_cast<std::size_t>(member)]; }

 private:
  std::string text_of(const failed_call& call) const;
  std::string rank_text(int member) const { return "rank " + std::to_string(rank_of(member)); }

  const group_description& group_;
};

}  // namespace troupe
