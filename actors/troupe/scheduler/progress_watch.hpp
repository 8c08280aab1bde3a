#pragma once
#include <caf/event_based_actor.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "troupe/messages/scheduler.hpp"
#include "troupe/scheduler/call_runner.hpp"
#include "troupe/scheduler/job_ending.hpp"
#include "troupe/scheduler/state/job_state.hpp"

namespace troupe::actors::scheduler {

/// How often processes sample and report their devices: often enough to detect a stall soon after its limit.
std::chrono::milliseconds progress_interval(std::chrono::milliseconds progress_timeout);
/// Throws bad_input for a limit, which names --progress-timeout, that is too short for enough samples:
/// actions that take longer would pass unseen. 0 is no limit.
void check_progress_timeout(std::chrono::milliseconds progress_timeout);

/// The newest progress report of each process; gives find_stall its input.
class stall_watch {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  void add(const messages::process_progress& seen, time_point now);
  /// The positions of all devices in the call `activity`. Devices of processes without a report in the last
  /// `fresh_for`, and devices busy in another call, are unknown; a device idle in another call is idle.
  schedule::job_positions at(time_point now, std::chrono::milliseconds fresh_for,
                             const job::call_request& activity, plan running) const;

 private:
  struct received {
    time_point when;
    messages::process_progress report;
  };
  std::map<int, received> processes_;
};

/// Detects that no device makes progress and finds the one that the others wait for.
class progress_watch {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  /// All outlive this object.
  progress_watch(caf::event_based_actor* self, const scheduler_options& options, const job_state& job,
                 const call_runner& calls, job_ending& ending)
      : self_(self), options_(options), job_(job), calls_(calls), ending_(ending) {}

  void on_progress(const messages::process_progress& seen);

 private:
  void act_on(const schedule::stall& found);
  std::string wait_without_limit() const;
  bool waits_for_copies() const;
  std::string missing_ranks() const;
  std::string ranks_without_tensors() const;
  void warn_of_wait(const std::string& what, time_point now);

  // constant
  caf::event_based_actor* self_;
  const scheduler_options& options_;
  const job_state& job_;
  const call_runner& calls_;
  job_ending& ending_;

  stall_watch stalls_;
  std::string warned_of_, waits_for_;
  std::optional<time_point> waits_since_;  ///< since the job waits for the user, a restore or the disk
  bool has_acted_ = false;                 ///< a stall of this generation was acted on
};

}  // namespace troupe::actors::scheduler
