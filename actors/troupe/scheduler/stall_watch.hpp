#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>

#include "troupe/scheduler/messages.hpp"

namespace troupe {

/// How often nodes look at their devices and tell: often enough to see a stall soon after its limit.
std::chrono::milliseconds progress_interval(std::chrono::milliseconds progress_timeout);

/// What the nodes said last of their devices' progress.
class stall_watch {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  void add(const node_progress& seen, time_point now);
  /// The devices of the nodes that said something within the last `fresh_for`, in the call and the kind of
  /// `activity`; others are not known. A device that is idle in another call is idle.
  job_positions at(time_point now, std::chrono::milliseconds fresh_for, const call_request& activity,
                   plan running) const;

 private:
  struct received {
    time_point when;
    node_progress report;
  };
  std::map<int, received> nodes_;
};

}  // namespace troupe
