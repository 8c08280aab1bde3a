#pragma once
#include <chrono>
#include <optional>

namespace troupe {

struct stop_limits {
  /// For the job to say whether all of it is to stop. Without that, the process alone was meant.
  std::chrono::milliseconds answer = std::chrono::seconds(2);
  /// For the whole: saving what is done, and ending.
  std::chrono::milliseconds grace = std::chrono::seconds(20);
  /// For the program, once the job has ended.
  std::chrono::milliseconds end_alone = std::chrono::seconds(3);
};

/// Where a process stands that was sent a signal to stop.
struct stop_wait {
  std::chrono::milliseconds since_signal{0};
  bool stop_wanted = false;  ///< the whole job is to stop
  std::optional<std::chrono::milliseconds> since_job_ended;
};

enum class stop_wait_end { none, sent_to_it_alone, grace_over, job_ended };

/// Whether the process has waited for its job and its program long enough and ends now by the signal, and
/// why.
stop_wait_end has_waited_enough(const stop_wait& now, const stop_limits& limits);

}  // namespace troupe
