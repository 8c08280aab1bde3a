#include "troupe/inspector/commands/command_target.hpp"

#include "troupe/inspector/views/names.hpp"

namespace troupe::actors::inspector {
namespace {

using found_target = std::variant<command_target, control_refusal>;

std::string id_of(const messages::process_report& report, const messages::child_report& child) {
  return actor_id(report, child.id);
}

bool is_stage(const command_target& target) {
  return target.child && target.child->role == actor::child_role::stage;
}

/// Whether the only copy of a part of the state in its process goes with the target.
bool loses_state(const command_target& target) { return !target.child || is_stage(target); }

int num_replaced(const job_view& view) {
  int replaced = 0;
  for (const auto& [rank, process] : view.processes) replaced += static_cast<int>(process.report.incarnation);
  return replaced;
}

std::optional<control_refusal> refused_process(const job_view& view, const control_rules& rules) {
  if (!rules.has_launcher)
    return control_refusal{409,
                           "expected a job that `troupe launch` has started, which replaces a process that "
                           "ends; nobody would replace this one, and the job would end"};
  if (rules.max_restarts && num_replaced(view) >= *rules.max_restarts)
    return control_refusal{409, "the launcher has replaced " + std::to_string(num_replaced(view)) +
                                    " processes and may replace no further one (--max-restarts " +
                                    std::to_string(*rules.max_restarts) + "): the job would end"};
  return {};
}

/// A state that is in one process alone does not survive it.
std::optional<control_refusal> refused_only_copy(const command_target& target, const job_view& view) {
  if (view.world_size > 1 || !loses_state(target)) return {};
  if (view.scheduler && view.scheduler->job && !view.scheduler->job->snapshots.folder.empty()) return {};
  return control_refusal{409, "this is the job's only process, and " + to_string(target) +
                                  " has its state, which no other one keeps: the work would be lost. With "
                                  "--snapshot-dir FOLDER it would come back from there"};
}

found_target process_of(int rank, const job_view& view, const control_rules& rules) {
  if (rank >= view.world_size)
    return control_refusal{404, "expected a rank from 0 to " + std::to_string(view.world_size - 1) +
                                    ", got " + std::to_string(rank)};
  auto process = view.processes.find(rank);
  if (process == view.processes.end())
    return control_refusal{409, "rank " + std::to_string(rank) +
                                    " has not reported yet: try again when it is in /api/v1/processes"};
  if (auto refused = refused_process(view, rules)) return *refused;
  return command_target{rank, process->second.report.incarnation, {}};
}

const messages::child_report* actor_in(const messages::process_report& report, const std::string& id) {
  for (const auto& child : report.children)
    if (id_of(report, child) == id) return &child;
  return nullptr;
}

found_target target_in(const messages::process_report& report, const messages::child_report& found) {
  if (!found.is_running)
    return control_refusal{
        409, "'" + id_of(report, found) + "' is not running, so there is nothing to end or start again"};
  return command_target{report.rank, report.incarnation, found.id};
}

found_target actor_of_id(const std::string& id, const job_view& view) {
  for (const auto& [rank, process] : view.processes) {
    if (supervisor_id(process.report) == id)
      return control_refusal{
          409, "a supervisor is ended with its process: send {\"rank\": " + std::to_string(rank) + "}"};
    if (const auto* found = actor_in(process.report, id)) return target_in(process.report, *found);
  }
  for (const auto& process : view.replaced)
    if (actor_in(process.report, id) || supervisor_id(process.report) == id)
      return control_refusal{409, "'" + id +
                                      "' was lost with its process, which was replaced: take the id "
                                      "of the new one from /api/v1/actors"};
  return control_refusal{404,
                         "expected an id of /api/v1/actors, got one that no actor has. Ids change when "
                         "a process is replaced"};
}

/// Before the job is known its scheduler decides.
std::optional<control_refusal> refused_snapshot(const job_view& view) {
  if (view.scheduler && view.scheduler->job && view.scheduler->job->snapshots.folder.empty())
    return control_refusal{409, "the job has no folder for snapshots: start it with --snapshot-dir FOLDER"};
  return {};
}

}  // namespace

std::string to_string(const command_target& target) {
  if (target.rank < 0) return "the job";
  auto of_rank = " of rank " + std::to_string(target.rank);
  if (!target.child) return "the process" + of_rank;
  return to_string(*target.child) + of_rank;
}

found_target target_of(const control_command& command, const job_view& view, const control_rules& rules) {
  if (command.action == control_action::snapshot)
    if (auto refused = refused_snapshot(view)) return *refused;
  if (!is_disruptive(command.action)) return command_target{};
  if (view.generation == 0)
    return control_refusal{409,
                           "the job has not begun, or rank 0 was replaced a moment ago: try again when "
                           "/api/v1/actors has what is meant"};
  auto found = command.rank ? process_of(*command.rank, view, rules) : actor_of_id(command.actor, view);
  if (auto* target = std::get_if<command_target>(&found))
    if (auto refused = refused_only_copy(*target, view)) return *refused;
  return found;
}

std::string reason_to_wait(const command_target& target, const messages::scheduler_report* report,
                           int world_size) {
  bool is_settled = report && (scheduler_phase_name(report->phase) == "running" ||
                               (scheduler_phase_name(report->phase) == "gathering" &&
                                (!report->job || report->hosts.num_devices() > 0)));
  if (!is_settled) return "the job is recovering, or has not begun to compute";
  if (!loses_state(target) || report->step == 0 || report->step_on_disk) return {};
  if (world_size == 1) return "no state of the job is on disk yet";
  if (report->committed_step > 0) return {};
  return "no state of the job is held by two processes yet, so that the work would be lost";
}

}  // namespace troupe::actors::inspector
