#pragma once
#include <cstddef>
#include <optional>

#include "troupe/job/call.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/schedule/find_stall.hpp"

namespace troupe::actors::messages {

/// The position of a device in the call `activity`, in whose plan it has `num_actions` actions. None if the
/// position is of another call or not in the plan (an outdated message).
inline std::optional<schedule::device_position> position_in_call(const device_progress& told,
                                                                 const job::call_request& activity,
                                                                 std::size_t num_actions) {
  const auto& position = told.position;
  if (position.activity == schedule::device_activity::idle &&
      (position.call != activity.index || position.kind != activity.kind))
    return schedule::device_position{schedule::device_activity::idle, 0, 0, told.for_s};
  if (position.call != activity.index || position.kind != activity.kind || position.action > num_actions)
    return {};
  bool is_over = position.activity == schedule::device_activity::applying ||
                 position.activity == schedule::device_activity::copying_state ||
                 position.activity == schedule::device_activity::idle;
  if (position.action == num_actions && !is_over) return {};
  return schedule::device_position{position.activity, position.step, position.action, told.for_s};
}

}  // namespace troupe::actors::messages
