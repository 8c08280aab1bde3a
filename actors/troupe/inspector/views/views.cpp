#include "troupe/inspector/views/views.hpp"

#include <cmath>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "troupe/actor/handler_times.hpp"
#include "troupe/inspector/views/names.hpp"

namespace troupe::actors::inspector {
namespace {

using json = nlohmann::ordered_json;

json memory_json(const messages::process_memory_report& memory) {
  auto known = [](std::uint64_t bytes) { return bytes > 0 ? json(bytes) : json(); };
  return {{"resident_bytes", known(memory.resident)},
          {"peak_resident_bytes", known(memory.peak_resident)},
          {"current_bytes", memory.current},
          {"peak_bytes", memory.peak},
          {"parameters_bytes", memory.parameters},
          {"gradients_bytes", memory.gradients},
          {"optimizer_bytes", memory.optimizer},
          {"activations_bytes", memory.activations},
          {"other_bytes", memory.other}};
}

json process_json(const process_view& process, const char* state) {
  const auto& report = process.report;
  return {{"rank", report.rank},
          {"incarnation", report.incarnation},
          {"pid", report.pid},
          {"host", report.host},
          {"state", state ? std::string(state) : process_phase_name(report.phase)},
          {"generation", report.generation},
          {"reported_ms", process.at_ms},
          {"unanswered_polls", process.num_unanswered},
          {"cores_waited_for", process.cores_waited_for},
          {"memory", memory_json(report.memory)}};
}

/// Adds what an actor has counted. What waits for one that was lost with its process is not known.
void add_counts(json& to, const actor::actor_counts& counts, bool is_lost) {
  auto known = [&](const json& value) { return is_lost ? json() : value; };
  auto quantile = [&](double fraction) {
    return counts.handler_times.empty() ? json()
                                        : json(actor::handler_quantile_s(counts.handler_times, fraction));
  };
  to["mailbox_depth"] = known(counts.mailbox_depth);
  to["oldest_message_s"] = known(counts.oldest_s);
  to["handler_running_s"] = known(counts.running_s);
  to["messages_in"] = counts.messages_in;
  to["messages_out"] = counts.messages_out;
  to["bytes_in"] = counts.frame_bytes_in;
  to["bytes_out"] = counts.frame_bytes_out;
  to["handler_s"] = counts.handler_s;
  to["handler_p50_s"] = quantile(0.5);
  to["handler_p99_s"] = quantile(0.99);
}

/// A process's supervisor and its children.
void append_actors(json& to, const messages::process_report& report, bool is_lost) {
  auto supervisor = supervisor_id(report);
  auto state_of = [&](bool is_running) { return is_lost ? "lost" : is_running ? "running" : "ended"; };
  to.push_back({{"id", supervisor},
                {"parent", nullptr},
                {"role", "supervisor"},
                {"number", report.rank},
                {"replica", nullptr},
                {"slice", nullptr},
                {"rank", report.rank},
                {"incarnation", report.incarnation},
                {"state", state_of(true)},
                {"restarts", 0},
                {"reason", nullptr}});
  add_counts(to.back(), report.supervisor, is_lost);
  for (const auto& child : report.children) {
    to.push_back({{"id", actor_id(report, child.id)},
                  {"parent", supervisor},
                  {"role", child_name(child.id.role)},
                  {"number", child.id.number},
                  {"replica", lane_json(child.id, child.id.replica)},
                  {"slice", lane_json(child.id, child.id.slice)},
                  {"rank", report.rank},
                  {"incarnation", report.incarnation},
                  {"state", state_of(child.is_running != 0)},
                  {"restarts", child.starts - 1},
                  {"reason", child.reason.empty() ? json() : json(child.reason)}});
    add_counts(to.back(), child.counts, is_lost);
  }
}

json device_json(const job_view& view, const messages::process_report& process,
                 const messages::device_progress& device) {
  json action;
  const auto& position = device.position;
  if (view.scheduler && view.scheduler->job) {
    const auto& devices = view.scheduler->job->training.devices;
    bool runs_plan = position.kind == job::call_kind::train || is_half_step(position.kind);
    if (runs_plan && !devices.empty() && position.action < devices[device.device % devices.size()].size())
      action = to_string(devices[device.device % devices.size()][position.action]);  // of any replica
  }
  auto memory = std::ranges::find(process.device_memory, static_cast<std::int32_t>(device.device),
                                  &messages::device_memory_report::device);
  auto held = memory != process.device_memory.end() ? *memory : messages::device_memory_report();
  return {{"device", device.device},
          {"rank", process.rank},
          {"place", held.place.empty() ? json() : json(held.place)},
          {"memory_bytes", held.held},
          {"peak_memory_bytes", held.peak},
          {"memory_limit_bytes", held.limit == 0 ? json() : json(held.limit)},
          {"host_memory_bytes", held.on_host},
          {"activity", activity_name(position.activity)},
          {"call", position.call},
          {"call_kind", call_name(position.kind)},
          {"run", position.step},
          {"position", position.action},
          {"action", action},
          {"at_position_s", device.for_s}};
}

/// One direction between two ranks, as both ends count it; null: that end has not reported anything of it.
struct link_ends {
  const transport::peer_statistics* sender = nullptr;
  const transport::peer_statistics* receiver = nullptr;
  link_rates rates;  ///< as the sending process counts them
};

std::map<std::pair<int, int>, link_ends> links_of(const job_view& view) {
  std::map<std::pair<int, int>, link_ends> links;
  for (const auto& [rank, process] : view.processes)
    for (const auto& peer : process.report.peers) {
      auto& there = links[{rank, peer.rank}];
      there.sender = &peer.counted;
      if (auto rates = process.sent_to.find(peer.rank); rates != process.sent_to.end())
        there.rates = rates->second;
      links[{peer.rank, rank}].receiver = &peer.counted;
    }
  return links;
}

json link_json(const std::pair<int, int>& ranks, const link_ends& ends) {
  auto sent = [&](auto field) { return ends.sender ? json(ends.sender->*field) : json(); };
  auto received = [&](auto field) { return ends.receiver ? json(ends.receiver->*field) : json(); };
  auto rate = [&](double value) { return ends.sender ? json(value) : json(); };
  using peer = transport::peer_statistics;
  return {{"from", ranks.first},
          {"to", ranks.second},
          {"tensors_sent", sent(&peer::tensors_sent)},
          {"tensors_received", received(&peer::tensors_received)},
          {"tensors_in_flight", sent(&peer::tensors_in_flight)},
          {"tensor_bytes_sent", sent(&peer::tensor_bytes_sent)},
          {"tensor_bytes_received", received(&peer::tensor_bytes_received)},
          {"tensor_bytes_in_flight", sent(&peer::tensor_bytes_in_flight)},
          {"frames_sent", sent(&peer::frames_sent)},
          {"frames_received", received(&peer::frames_received)},
          {"frame_bytes_sent", sent(&peer::frame_bytes_sent)},
          {"frame_bytes_received", received(&peer::frame_bytes_received)},
          {"frame_bytes_queued", sent(&peer::frame_bytes_queued)},
          {"bytes_per_s", rate(ends.rates.bytes_per_s)},
          {"tensors_per_s", rate(ends.rates.tensors_per_s)},
          {"frames_per_s", rate(ends.rates.frames_per_s)}};
}

json total_json(int rank, const process_view& process) {
  const auto& report = process.report;
  return {{"rank", rank},
          {"tensors_sent", report.tensors_sent},
          {"tensors_received", report.tensors_received},
          {"tensor_bytes_sent", report.tensor_bytes_sent},
          {"tensor_bytes_received", report.tensor_bytes_received},
          {"tensor_bytes_shared", report.tensor_bytes_shared},
          {"control_frames_sent", report.control_frames_sent},
          {"control_frames_received", report.control_frames_received},
          {"stale_frames", report.stale_frames},
          {"bad_frames", report.bad_frames},
          {"bytes_sent_per_s", process.bytes_sent_per_s},
          {"bytes_received_per_s", process.bytes_received_per_s},
          {"tensors_sent_per_s", process.tensors_sent_per_s},
          {"tensors_received_per_s", process.tensors_received_per_s}};
}

json recovery_json(const messages::past_recovery& past) {
  const auto& report = past.report;
  return {{"at_ms", past.at_ms},           {"generation", report.generation}, {"rank", report.loss.rank},
          {"cause", report.loss.cause},    {"detect_s", report.detect_s},     {"fence_s", report.fence_s},
          {"quiesce_s", report.quiesce_s}, {"respawn_s", report.respawn_s},   {"restore_s", report.restore_s},
          {"rebuild_s", report.rebuild_s}, {"replay_s", report.replay_s},     {"total_s", report.total_s}};
}

/// Of the newest step that is done; null: not known.
json learning_rate_json(const messages::scheduler_report& report) {
  if (!report.job || !report.job->learning_rate) return {};
  auto done = report.step * steps_of_run(report);
  try {
    auto rate = report.job->learning_rate(done > 0 ? done - 1 : 0);
    return std::isfinite(rate) ? json(rate) : json();
  } catch (const std::exception&) {
    return {};  // a schedule of the program, which fails its step as well
  }
}

/// Rates as they are now, and what follows from them. They fall to 0 when nothing is done any more.
void add_rates(json& to, const job_view& view, const metrics_history& metrics) {
  auto newest = metrics.newest();
  if (!newest) return;
  to["loss"] = newest->loss;
  to["newest_step_ms"] = newest->at_ms;
  if (metrics.rate(metrics_history::steps_of_rate) <= 0) return;
  auto runs_per_s = metrics.rate_at(view.at_ms);
  to["samples_per_s"] = runs_per_s * static_cast<double>(newest->num_samples);
  const auto& report = view.scheduler;
  if (!report) return;
  to["steps_per_s"] = runs_per_s * static_cast<double>(steps_of_run(*report));
  if (runs_per_s > 0 && report->end_step > report->step)
    to["seconds_left"] = static_cast<double>(report->end_step - report->step) / runs_per_s;
}

}  // namespace

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json lane_json(const actor::child_id& child, int index) {
  return child.role == actor::child_role::stage ? json(index) : json();
}

json job_json(const std::string& job_id, const job_view& view, const metrics_history& metrics) {
  json known = {{"job_id", job_id},
                {"world_size", view.world_size},
                {"rank", view.rank},
                {"generation", view.generation},
                {"started_ms", view.history.started_ms},
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
                {"newest_step_ms", nullptr},
                {"seconds_left", nullptr},
                {"learning_rate", nullptr},
                {"num_recoveries", view.history.num_recoveries},
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
    known["learning_rate"] = learning_rate_json(*report);
  }
  add_rates(known, view, metrics);
  for (const auto& one : view.history.recoveries) known["recoveries"].push_back(recovery_json(one));
  return known;
}

json processes_json(const job_view& view) {
  json processes = json::array(), replaced = json::array();
  for (const auto& [rank, process] : view.processes) processes.push_back(process_json(process, nullptr));
  for (const auto& process : view.replaced) replaced.push_back(process_json(process, "lost"));
  return {{"processes", processes}, {"replaced", replaced}};
}

json devices_json(const job_view& view) {
  json devices = json::array();
  for (const auto& [rank, process] : view.processes)
    for (const auto& device : process.report.devices)
      devices.push_back(device_json(view, process.report, device));
  return {{"devices", devices}};
}

json actors_json(const job_view& view) {
  json actors = json::array();
  for (const auto& [rank, process] : view.processes) append_actors(actors, process.report, false);
  for (const auto& process : view.replaced) append_actors(actors, process.report, true);
  return {{"actors", actors}};
}

json links_json(const job_view& view) {
  json links = json::array(), totals = json::array();
  for (const auto& [ranks, ends] : links_of(view)) links.push_back(link_json(ranks, ends));
  for (const auto& [rank, process] : view.processes) totals.push_back(total_json(rank, process));
  return {{"links", links}, {"totals", totals}};
}

json snapshots_json(const job_view& view, const std::optional<std::vector<std::uint64_t>>& on_disk) {
  json known = {{"folder", nullptr},
                {"committed_step", nullptr},
                {"step_on_disk", nullptr},
                {"pending", 0},
                {"on_disk", nullptr}};
  if (!view.scheduler || !view.scheduler->job) return known;
  const auto& report = *view.scheduler;
  const auto& folder = report.job->snapshots.folder;
  if (!folder.empty()) known["folder"] = folder.string();
  known["committed_step"] = report.committed_step * steps_of_run(report);
  if (report.step_on_disk) known["step_on_disk"] = *report.step_on_disk * steps_of_run(report);
  known["pending"] = report.num_pending;
  if (!on_disk) return known;
  known["on_disk"] = json::array();
  for (auto runs : *on_disk) known["on_disk"].push_back(runs * steps_of_run(report));
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

}  // namespace troupe::actors::inspector
