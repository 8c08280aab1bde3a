#include "troupe/inspector/views.hpp"

#include <nlohmann/json.hpp>

#include "troupe/inspector/names.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

json node_json(const node_view& node, const char* state) {
  const auto& report = node.report;
  return {{"rank", report.rank},
          {"incarnation", report.incarnation},
          {"pid", report.pid},
          {"host", report.host},
          {"state", state ? std::string(state) : node_phase_name(report.phase)},
          {"generation", report.generation},
          {"reported_ms", node.at_ms},
          {"unanswered_polls", node.num_unanswered}};
}

/// A process's supervisor and its children.
void append_actors(json& to, const node_report& report, bool is_lost) {
  auto supervisor = actor_id(report, "supervisor", report.rank);
  auto state_of = [&](bool is_running) { return is_lost ? "lost" : is_running ? "running" : "ended"; };
  to.push_back({{"id", supervisor},
                {"parent", nullptr},
                {"role", "supervisor"},
                {"number", report.rank},
                {"rank", report.rank},
                {"incarnation", report.incarnation},
                {"state", state_of(true)},
                {"restarts", 0},
                {"reason", nullptr},
                {"mailbox_depth", nullptr}});
  for (const auto& child : report.children) {
    auto role = child_name(child.role);
    to.push_back({{"id", actor_id(report, role, child.number)},
                  {"parent", supervisor},
                  {"role", role},
                  {"number", child.number},
                  {"rank", report.rank},
                  {"incarnation", report.incarnation},
                  {"state", state_of(child.is_running != 0)},
                  {"restarts", child.starts - 1},
                  {"reason", child.reason.empty() ? json() : json(child.reason)},
                  {"mailbox_depth", nullptr}});
  }
}

json device_json(const job_view& view, const node_report& node, const device_progress& device) {
  json action;
  const auto& position = device.position;
  if (view.scheduler && view.scheduler->job) {
    const auto& devices = view.scheduler->job->training.devices;
    bool runs_plan = position.kind == call_kind::train || is_half_step(position.kind);
    if (runs_plan && !devices.empty() && position.action < devices[device.device % devices.size()].size())
      action = to_string(devices[device.device % devices.size()][position.action]);  // of any replica
  }
  return {{"device", device.device},
          {"rank", node.rank},
          {"activity", activity_name(position.activity)},
          {"call", position.call},
          {"call_kind", call_name(position.kind)},
          {"run", position.step},
          {"position", position.action},
          {"action", action},
          {"at_position_s", device.for_s}};
}

json recovery_json(const past_recovery& past) {
  const auto& report = past.report;
  return {{"at_ms", past.at_ms},           {"generation", report.generation}, {"rank", report.loss.rank},
          {"cause", report.loss.cause},    {"detect_s", report.detect_s},     {"fence_s", report.fence_s},
          {"quiesce_s", report.quiesce_s}, {"respawn_s", report.respawn_s},   {"restore_s", report.restore_s},
          {"rebuild_s", report.rebuild_s}, {"replay_s", report.replay_s},     {"total_s", report.total_s}};
}

}  // namespace

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json job_json(const std::string& job_id, const job_view& view, const metrics_history& metrics) {
  json known = {{"job_id", job_id},
                {"world_size", view.world_size},
                {"rank", view.rank},
                {"generation", view.generation},
                {"started_ms", view.started_ms},
                {"updated_ms", view.at_ms},
                {"state", nullptr},
                {"call", nullptr},
                {"call_kind", nullptr},
                {"step", nullptr},
                {"end_step", nullptr},
                {"is_stopping", false},
                {"is_paused", false},
                {"stands", false},
                {"loss", nullptr},
                {"steps_per_s", nullptr},
                {"samples_per_s", nullptr},
                {"num_recoveries", view.num_recoveries},
                {"recoveries", json::array()}};
  if (const auto& report = view.scheduler) {
    known["state"] = scheduler_phase_name(report->phase);
    known["call"] = report->call;
    known["call_kind"] = call_name(report->kind);
    known["step"] = report->step * steps_of_run(*report);
    known["end_step"] = report->end_step * steps_of_run(*report);
    known["is_stopping"] = report->is_stopping;
    known["is_paused"] = report->pause.is_paused != 0;
    known["stands"] = report->pause.is_paused != 0 && report->pause.is_reached != 0;
    if (view.steps_per_s > 0)
      known["steps_per_s"] = view.steps_per_s * static_cast<double>(steps_of_run(*report));
  }
  if (auto newest = metrics.newest()) {
    known["loss"] = newest->loss;
    if (view.steps_per_s > 0)
      known["samples_per_s"] = view.steps_per_s * static_cast<double>(newest->num_samples);
  }
  for (const auto& one : view.recoveries) known["recoveries"].push_back(recovery_json(one));
  return known;
}

json nodes_json(const job_view& view) {
  json nodes = json::array(), replaced = json::array();
  for (const auto& [rank, node] : view.nodes) nodes.push_back(node_json(node, nullptr));
  for (const auto& node : view.replaced) replaced.push_back(node_json(node, "lost"));
  return {{"nodes", nodes}, {"replaced", replaced}};
}

json devices_json(const job_view& view) {
  json devices = json::array();
  for (const auto& [rank, node] : view.nodes)
    for (const auto& device : node.report.devices) devices.push_back(device_json(view, node.report, device));
  return {{"devices", devices}};
}

json actors_json(const job_view& view) {
  json actors = json::array();
  for (const auto& [rank, node] : view.nodes) append_actors(actors, node.report, false);
  for (const auto& node : view.replaced) append_actors(actors, node.report, true);
  return {{"actors", actors}};
}

json links_json(const job_view& view) {
  json links = json::array();
  for (const auto& [rank, node] : view.nodes) {
    const auto& report = node.report;
    links.push_back({{"rank", rank},
                     {"peers", "all"},
                     {"tensors_sent", report.tensors_sent},
                     {"tensors_received", report.tensors_received},
                     {"tensor_bytes_sent", report.tensor_bytes_sent},
                     {"tensor_bytes_received", report.tensor_bytes_received},
                     {"control_frames_sent", report.control_frames_sent},
                     {"control_frames_received", report.control_frames_received},
                     {"stale_frames", report.stale_frames},
                     {"bad_frames", report.bad_frames},
                     {"bytes_sent_per_s", node.bytes_sent_per_s},
                     {"bytes_received_per_s", node.bytes_received_per_s},
                     {"tensors_sent_per_s", node.tensors_sent_per_s},
                     {"tensors_received_per_s", node.tensors_received_per_s}});
  }
  return {{"links", links}};
}

json snapshots_json(const job_view& view) {
  json known = {{"folder", nullptr}, {"committed_step", nullptr}, {"step_on_disk", nullptr}, {"pending", 0}};
  if (!view.scheduler || !view.scheduler->job) return known;
  const auto& report = *view.scheduler;
  const auto& folder = report.job->snapshots.folder;
  if (!folder.empty()) known["folder"] = folder.string();
  known["committed_step"] = report.committed_step * steps_of_run(report);
  if (report.step_on_disk) known["step_on_disk"] = *report.step_on_disk * steps_of_run(report);
  known["pending"] = report.num_pending;
  return known;
}

json findings_json(const job_view& view) {
  auto known = [](int number) { return number < 0 ? json() : json(number); };
  json findings = json::array();
  for (const auto& one : view.findings)
    findings.push_back({{"kind", to_string(one.kind)},
                        {"actor", one.actor.empty() ? json() : json(one.actor)},
                        {"rank", known(one.rank)},
                        {"device", known(one.device)},
                        {"text", one.text},
                        {"since_ms", one.since_ms},
                        {"seen_ms", one.seen_ms}});
  return {{"findings", findings}};
}

json metrics_json(const metrics_history::piece& found) {
  json steps = json::array();
  for (const auto& one : found.steps)
    steps.push_back({{"step", one.step},
                     {"at_ms", one.at_ms},
                     {"loss", one.loss},
                     {"num_samples", one.num_samples},
                     {"step_s", one.step_s},
                     {"span_s", one.span_s},
                     {"busy_s", one.busy_s},
                     {"copy_s", one.copy_s}});
  return {
      {"oldest", found.oldest ? json(*found.oldest) : json()}, {"missed", found.missed}, {"steps", steps}};
}

json log_json(const std::vector<log_tail::line>& lines) {
  json shown = json::array();
  for (const auto& one : lines)
    shown.push_back({{"number", one.number}, {"at_ms", one.at_ms}, {"level", one.level}, {"text", one.text}});
  return {{"lines", shown}};
}

}  // namespace troupe
