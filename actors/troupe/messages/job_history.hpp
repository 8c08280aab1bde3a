#pragma once
#include <cereal/types/deque.hpp>
#include <cereal/types/string.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "troupe/cluster/membership.hpp"

namespace troupe::actors::messages {

struct past_recovery {
  cluster::recovery_report report;
  std::int64_t at_ms = 0;  ///< Unix time at which it was over
  template <class Archive>
  void serialize(Archive& archive) {
    auto& r = report;
    archive(r.generation, r.loss.rank, r.loss.cause, r.detect_s, r.fence_s, r.quiesce_s, r.respawn_s,
            r.restore_s, r.rebuild_s, r.replay_s, r.total_s, at_ms);
  }
};

/// What has happened to a job, as one of its processes knows it. Each process keeps one, so that the loss of
/// none of them, rank 0 included, loses it: they learn from each other what they were too young to see.
struct job_history {
  static constexpr std::size_t max_kept = 64;
  std::int64_t started_ms = 0;           ///< Unix time at which the oldest known process began; 0: not known
  std::deque<past_recovery> recoveries;  ///< the newest `max_kept`, by generation, oldest first
  std::uint64_t num_recoveries = 0;      ///< also those that are not kept any more

  /// Adds one that is over. Returns false if it was known: each generation ends one recovery at most.
  bool add(const past_recovery& recovery);
  /// Adds what another process knows.
  void learn(const job_history& other);
  /// Whether it knows something that `other` does not.
  bool is_ahead_of(const job_history& other) const;
  /// Without its recoveries, whose number stays: enough for is_ahead_of.
  job_history summary() const { return {started_ms, {}, num_recoveries}; }

  template <class Archive>
  void serialize(Archive& archive) {
    archive(started_ms, recoveries, num_recoveries);
  }
};

}  // namespace troupe::actors::messages
