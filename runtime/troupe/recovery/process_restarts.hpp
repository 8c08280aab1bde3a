#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "troupe/recovery/restart_policy.hpp"

namespace troupe::recovery {

struct process_restart_options {
  /// Restarts within `window`, all ranks together. 0: the first loss ends the job.
  int max_restarts = 16;
  std::chrono::milliseconds window = std::chrono::hours(1);
  /// How often a rank is started again after one and the same failure without a step done in between.
  int max_same_failure = 2;
};

/// How a process was lost.
struct process_failure {
  int rank = 0;
  std::string cause;              ///< "exit code 1: no such file"
  std::uint64_t newest_step = 0;  ///< steps ever done; equal in two failures: no progress between them
  bool was_wanted = false;        ///< it was killed by an injected fault
  /// Another process killed it, which says nothing of the program: any progress counts, not only new steps.
  bool was_killed_by_others = false;
  /// Counts steps done, those computed again too, and recoveries, since a paused job does no step.
  std::uint64_t num_advances = 0;
};

/// Decides whether lost processes are started again. Values and times in; knows no process.
class process_restarts {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  explicit process_restarts(const process_restart_options& options)
      : options_(options), restarts_({.intensity = options.max_restarts, .period = options.window}) {}

  /// Why the process must not be restarted; none: it is restarted, and the restart counts.
  std::optional<std::string> refusal(const process_failure& lost, time_point now);

 private:
  struct repeated {
    std::string cause;
    std::uint64_t progress = 0;
    int times = 0;
    time_point last;
  };
  int times_the_same(const process_failure& lost, time_point now);

  process_restart_options options_;
  restart_intensity restarts_;
  std::map<int, repeated> failures_;  ///< by rank, the newest
};

}  // namespace troupe::recovery
