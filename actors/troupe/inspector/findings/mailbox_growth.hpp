#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "troupe/inspector/views/finding.hpp"
#include "troupe/inspector/views/job_view.hpp"

namespace troupe::actors::inspector {

/// Finds actors whose mailboxes grow: messages come faster than they are handled, or are not handled at all.
///
/// An actor's mailbox grows from the first report in which messages wait, or fewer than in the report
/// before. It is a finding when it has grown for 1 s and by 10 messages, and the oldest message has waited
/// long enough. That is 1 s, and longer than the slowest of the newest steps (10 s before the job's first
/// step). A device that computes takes its messages between two actions, each other actor within
/// milliseconds. It stays one until the mailbox becomes smaller.
class mailbox_growth {
 public:
  /// Call it with views in the order of their time. Reports that were there before change nothing.
  void observe(const job_view& view);
  std::vector<finding> find(const job_view& view) const;

 private:
  struct actor {
    int rank = 0;
    std::uint32_t incarnation = 0;
    std::optional<actors::actor::child_id> child;  ///< none: the supervisor
    auto operator<=>(const actor&) const = default;
  };
  struct growth {
    std::int64_t since_ms = 0, at_ms = 0;  ///< of the first report of the growth, and of the newest
    std::uint64_t first = 0, newest = 0;   ///< depths in these
    actors::actor::actor_counts counts;    ///< of the newest; empty unless messages wait
  };
  void observe_actor(const actor& one, std::int64_t at_ms, const actors::actor::actor_counts& counts);
  static finding finding_of(const job_view& view, const actor& one, const growth& grown);

  std::map<actor, growth> known_;
};

}  // namespace troupe::actors::inspector
