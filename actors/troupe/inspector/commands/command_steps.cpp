#include "troupe/inspector/commands/command_steps.hpp"

namespace troupe::actors::inspector {
namespace {

const messages::child_report* target_in(const messages::process_report& report,
                                        const command_target& target) {
  for (const auto& child : report.children)
    if (child.id == target.child) return &child;
  return nullptr;
}

std::string seconds_text(std::chrono::milliseconds limit) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(limit).count()) + " s";
}

}  // namespace

job::pause_request pause_request_of(const control_command& command) {
  job::pause_request request;
  request.unit = command.unit;
  request.count = command.count;
  if (command.action == control_action::resume) request.command = job::pause_command::resume;
  if (command.action == control_action::step) request.command = job::pause_command::step;
  return request;
}

std::optional<std::uint32_t> starts_in(const job_view& view, const command_target& target) {
  auto process = view.processes.find(target.rank);
  if (!target.child || process == view.processes.end()) return {};
  const auto* child = target_in(process->second.report, target);
  return child ? std::optional(child->starts) : std::nullopt;
}

std::optional<command_outcome> standing_outcome(const job::pause_state& pause, std::uint64_t version) {
  if (pause.version < version) return {};
  if (pause.version > version)
    return command_outcome{command_result::done, "another command came after it", {}};
  if (pause.is_reached == 0) return {};
  return command_outcome{command_result::done, "the job is paused, and all devices stand", {}};
}

std::optional<command_outcome> ended_outcome(const open_command& one,
                                             const messages::process_report& report) {
  const auto& target = one.target;
  if (report.incarnation > target.incarnation)
    return command_outcome{command_result::done,
                           "the process was replaced by " + std::to_string(report.pid) + ", incarnation " +
                               std::to_string(report.incarnation),
                           {}};
  if (!target.child || !one.starts_before) return {};
  const auto* child = target_in(report, target);
  if (!child || child->is_running == 0 || child->starts <= *one.starts_before) return {};
  return command_outcome{
      command_result::done, "it was started again, start " + std::to_string(child->starts), {}};
}

command_outcome timeout_outcome(const control_command& command, bool is_paused,
                                std::chrono::milliseconds limit) {
  auto within = " within " + seconds_text(limit);
  if (is_paused)
    return {command_result::timed_out,
            "devices have not come to where they stop" + within + ", and go on to it",
            {}};
  switch (command.action) {
    case control_action::step:
      return {command_result::timed_out,
              "the job has run no steps" + within + "; the command is carried out as soon as it does",
              {}};
    case control_action::pause:
    case control_action::resume:
      return {command_result::timed_out,
              "the scheduler has not carried it out" + within + ", and does so when the job has recovered",
              {}};
    case control_action::snapshot:
      return {command_result::timed_out,
              "no snapshot was on disk" + within +
                  "; it is written with the next steps that are done, and an "
                  "event 'snapshot' tells",
              {}};
    case control_action::log_level:
    case control_action::restart:
    case control_action::kill:
      break;
  }
  return {command_result::timed_out,
          "it has not happened" + within + ". /api/v1/processes and /api/v1/actors show what is stuck",
          {}};
}

}  // namespace troupe::actors::inspector
