#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>

#include "troupe/scheduler/messages.hpp"

namespace troupe {

/// How often nodes sample and report their devices: often enough to detect a stall soon after its limit.
std::chrono::milliseconds progress_interval(std::chrono::milliseconds progress_timeout);

/// The newest progress report of each node; gives find_stall its input.
class stall_watch {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  void add(const node_progress& seen, time_point now);
  /// The positions of all devices in the call `activity`. Devices of nodes without a report in the last
  /// `fresh_for`, and devices busy in another call, are unknown; a device idle in another call is idle.
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
