#pragma once
#include <string>
#include <vector>

#include "troupe/collective/calls/backend.hpp"
#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/work.hpp"
#include "troupe/collective/diagnostics/failure_report.hpp"

namespace troupe::collective {

/// A call of one member that failed.
struct failed_call {
  const call_signature& signature;
  std::uint64_t sequence;
};

/// Makes the errors with which calls fail, from the members' failure reports and what was seen of them. The
/// same for all backends.
class failure_diagnosis {
 public:
  /// `group` outlives it.
  explicit failure_diagnosis(const group_description& group) : group_(group) {}

  /// What the other members are doing. A member is behind if a report names it as awaited, and the member has
  /// no report itself or waits for no other member. (A member that has finished its part and computes has no
  /// report either, but no other member waits for it.)
  std::vector<member_state> member_states(const member_reports& reports) const;

  /// A call did not end in time.
  collective_error timed_out(const call& late, const std::vector<member_state>& states,
                             const std::string& recent_calls) const;
  /// This member has cancelled a call.
  collective_error cancelled(const failed_call& unwanted) const;
  /// Member `from` has aborted the group.
  collective_error aborted_by(member_index from, const failure_report& report) const;
  /// A member has ended. how: "the process of rank 3 has ended"; activity: what it did before.
  collective_error lost(const failed_call& failed, member_index member, const std::string& how,
                        const std::string& activity) const;
  /// Members have made different calls.
  collective_error mismatch(const failed_call& own, member_index other, const call_signature& theirs) const;
  /// A message of `from` differs from what was expected.
  collective_error wrong_message(const failed_call& expected, member_index from,
                                 const call_signature& theirs) const;
  /// The library below has failed with `problem`. The others' reports may have the cause.
  collective_error library_failure(const failed_call& failed, const std::string& problem,
                                   const member_reports& reports) const;
  /// This member has failed, whatever the others do.
  collective_error local_failure(const failed_call& failed, const std::string& problem) const;

  world_rank rank_of(member_index member) const { return group_.rank_of(member); }

 private:
  std::string text_of(const failed_call& call) const;
  std::string rank_text(member_index member) const { return "rank " + to_string(rank_of(member)); }

  const group_description& group_;
};

}  // namespace troupe::collective
