#include "troupe/scheduler/stall_watch.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

/// None if the position is of another call or not in the plan (an outdated message).
std::optional<device_position> position_of(const device_progress& told, const call_request& activity,
                                           std::size_t num_actions) {
  const auto& position = told.position;
  if (position.activity == device_activity::idle &&
      (position.call != activity.index || position.kind != activity.kind))
    return device_position{device_activity::idle, 0, 0, told.for_s};
  if (position.call != activity.index || position.kind != activity.kind || position.action > num_actions)
    return {};
  bool is_over = position.activity == device_activity::applying || position.activity == device_activity::idle;
  if (position.action == num_actions && !is_over) return {};
  return device_position{position.activity, position.step, position.action, told.for_s};
}

}  // namespace

std::chrono::milliseconds progress_interval(std::chrono::milliseconds progress_timeout) {
  using std::chrono::milliseconds;
  return std::clamp<milliseconds>(progress_timeout / 16, milliseconds(20), milliseconds(10'000));
}

void stall_watch::add(const node_progress& seen, time_point now) { nodes_[seen.rank] = {now, seen}; }

job_positions stall_watch::at(time_point now, std::chrono::milliseconds fresh_for,
                              const call_request& activity, plan running) const {
  job_positions seen;
  seen.devices.resize(running.devices.size());
  seen.loaders.resize(running.devices.size());
  for (const auto& [rank, latest] : nodes_) {
    if (now - latest.when > fresh_for) continue;
    for (const auto& told : latest.report.devices) {
      if (told.device >= running.devices.size()) continue;
      seen.devices[told.device] = position_of(told, activity, running.devices[told.device].size());
      seen.loaders[told.device] = {latest.report.loader_is_working != 0, latest.report.loader_for_s};
    }
  }
  seen.running = std::move(running);
  return seen;
}

}  // namespace troupe
