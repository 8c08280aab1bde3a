#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "troupe/inspector/commands/open_commands.hpp"
#include "troupe/inspector/views/job_view.hpp"
#include "troupe/job/pause.hpp"

namespace troupe::actors::inspector {

// What command_runner decides, as functions of values.

/// The request of a pause, resume or step.
job::pause_request pause_request_of(const control_command& command);

/// How often the actor was started, as far as known; none: the target is no known actor.
std::optional<std::uint32_t> starts_in(const job_view& view, const command_target& target);

/// What became of a pause or step that has made version `version` of the pause_state; none: devices are on
/// their way to where they stop.
std::optional<command_outcome> standing_outcome(const job::pause_state& pause, std::uint64_t version);

/// What became of a restart or kill that was passed on, by a report of its process; none: not known yet.
std::optional<command_outcome> ended_outcome(const open_command& one, const messages::process_report& report);

/// Of a command that was passed on and is not done in time. `is_paused`: the job has paused for it.
command_outcome timeout_outcome(const control_command& command, bool is_paused,
                                std::chrono::milliseconds limit);

}  // namespace troupe::actors::inspector
