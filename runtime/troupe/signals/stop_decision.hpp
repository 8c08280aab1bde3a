#pragma once
#include <chrono>
#include <optional>

namespace troupe::signals {

struct stop_limits {
  /// Time for the launcher to confirm that the whole job stops. Without it, only this process was signalled.
  std::chrono::milliseconds answer = std::chrono::seconds(2);
  /// Time to save the last step and end the job.
  std::chrono::milliseconds grace = std::chrono::seconds(20);
  /// Time for the program to exit after the job has ended.
  std::chrono::milliseconds end_alone = std::chrono::seconds(3);
};

/// The state of a process that received a stop signal.
struct stop_progress {
  std::chrono::milliseconds since_signal{0};
  bool stop_requested = false;  ///< the whole job is to stop
  std::optional<std::chrono::milliseconds> since_job_ended;
};

enum class stop_decision { keep_waiting, only_this_process, grace_over, job_ended };

/// Decides whether the process keeps waiting for its job and program, or ends by the signal, and why.
stop_decision decide_stop(const stop_progress& now, const stop_limits& limits);

}  // namespace troupe::signals
