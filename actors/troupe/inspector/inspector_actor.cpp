#include "troupe/inspector/inspector_actor.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "troupe/inspector/views/names.hpp"
#include "troupe/inspector/views/views.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/posix/unix_time.hpp"

namespace troupe::actors::inspector {
namespace {

using json = nlohmann::ordered_json;

/// With the time: who comes later sees when it was.
std::string dumped(json object) {
  if (!object.contains("at_ms")) object["at_ms"] = posix::unix_now_ms();
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <class Value>
void push_bounded(std::deque<Value>& to, Value value) {
  to.push_back(std::move(value));
  if (to.size() > job_view::max_past) to.pop_front();
}

const messages::child_report* child_in(const messages::process_report* report,
                                       const messages::child_report& wanted) {
  if (report)
    for (const auto& one : report->children)
      if (one.id == wanted.id) return &one;
  return nullptr;
}

}  // namespace

bool is_suspended_process(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  // "PID (name) state ...", whose name may hold anything
  auto end = text.rfind(") ");
  return end != std::string::npos && end + 2 < text.size() && (text[end + 2] == 'T' || text[end + 2] == 't');
}

inspector_state::inspector_state(caf::event_based_actor* self, inspector_options options)
    : self_(self), options_(std::move(options)) {
  // One that is started again goes on with what its predecessor knew.
  if (auto known = options_.out->view()) view_ = *known;
  view_.rank = options_.rank;
  view_.world_size = options_.world_size;
  if (view_.history.started_ms == 0) view_.history.started_ms = posix::unix_now_ms();
  commands_.emplace(self_, options_.out, view_, options_.command_timeout);
}

caf::behavior inspector_state::make_behavior() {
  return {[this](const messages::inspected_generation& begun) { on_generation(begun); },
          [this](const messages::inspected_recovery& recovery) { on_recovery(recovery); },
          [this](const messages::commands_posted&) { commands_->on_posted(); },
          [this](const messages::poll_job&) { on_poll(); }};
}

void inspector_state::on_generation(const messages::inspected_generation& begun) {
  bool is_first = generation_.generation == 0;
  generation_ = begun;
  steps_known_ = 0;
  asked_.clear();
  scheduler_asked_ = false;
  if (std::exchange(view_.generation, begun.generation) != begun.generation)
    options_.out->events()->append("generation", dumped({{"generation", begun.generation}}));
  commands_->begin_generation(begun);
  if (is_first) on_poll();
}

void inspector_state::on_recovery(const messages::inspected_recovery& recovery) {
  const auto& report = recovery.report;
  view_.history.add({report, posix::unix_now_ms()});
  options_.out->events()->append("recovery", dumped({{"generation", report.generation},
                                                     {"rank", report.loss.rank},
                                                     {"cause", report.loss.cause},
                                                     {"seconds", report.total_s}}));
}

void inspector_state::on_poll() {
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), options_.poll_interval,
                      messages::poll_job{});
  view_.at_ms = posix::unix_now_ms();
  look_for_faults();
  options_.out->publish(view_);
  for (std::size_t rank = 0; rank < generation_.supervisors.size(); ++rank)
    ask_process(static_cast<int>(rank));
  ask_scheduler();
  commands_->on_poll();
}

void inspector_state::look_for_faults() {
  for (auto& [rank, process] : view_.processes)
    process.is_suspended = process.num_unanswered > 0 && process.report.host == options_.host &&
                           options_.is_suspended(process.report.pid);
  auto now = posix::unix_now_ms();
  auto found = faults_.observe(view_, now);
  for (const auto& one : found) {
    bool is_known = std::ranges::any_of(view_.findings, [&](const auto& old) { return old.is_same_as(one); });
    if (!is_known)
      options_.out->events()->append(
          "finding", dumped({{"kind", to_string(one.kind)}, {"rank", one.rank}, {"text", one.text}}));
  }
  view_.findings = std::move(found);
}

void inspector_state::ask_process(int rank) {
  if (!asked_.insert(rank).second) {
    if (view_.processes.contains(rank)) ++view_.processes[rank].num_unanswered;
    return;
  }
  auto generation = generation_.generation;
  // An inspector of a process that has replaced another learns from survivors what was before it, and tells
  // it to those that are younger.
  messages::inspect_process question{generation, 0, {}};
  if (auto known = view_.processes.find(rank); known != view_.processes.end()) {
    const auto& there = known->second.report.history;
    question.wants_history = there.is_ahead_of(view_.history) ? 1 : 0;
    if (view_.history.is_ahead_of(there)) question.history = view_.history;
  }
  bool learns = question.wants_history != 0;
  self_->request(generation_.supervisors[static_cast<std::size_t>(rank)], options_.request_timeout, question)
      .then(
          [this, rank, generation, learns](const messages::process_report& report) {
            if (generation != generation_.generation) return;
            asked_.erase(rank);
            if (learns) view_.history.learn(report.history);
            on_process(rank, report);
          },
          [this, rank, generation](const caf::error&) {
            if (generation == generation_.generation) asked_.erase(rank);
          });
}

void inspector_state::ask_scheduler() {
  if (!generation_.scheduler || std::exchange(scheduler_asked_, true)) return;
  auto generation = generation_.generation;
  self_->request(generation_.scheduler, options_.request_timeout, messages::inspect_scheduler{steps_known_})
      .then(
          [this, generation](const messages::scheduler_report& report) {
            if (generation != generation_.generation) return;
            scheduler_asked_ = false;
            on_scheduler(report);
          },
          [this, generation](const caf::error&) {
            if (generation == generation_.generation) scheduler_asked_ = false;
          });
}

void inspector_state::on_process(int rank, const messages::process_report& report) {
  auto now = posix::unix_now_ms();
  auto known = view_.processes.find(rank);
  process_view next{report, now};
  next.report.history = report.history.summary();
  if (known != view_.processes.end() && known->second.report.incarnation == report.incarnation) {
    const auto& before = known->second;
    auto seconds = static_cast<double>(now - before.at_ms) / 1000;
    set_rates(next, before.report, seconds);
    note_changes(&before.report, report);
  } else {
    if (known != view_.processes.end()) push_bounded(view_.replaced, known->second);
    options_.out->events()->append(
        "process", dumped({{"rank", rank}, {"incarnation", report.incarnation}, {"pid", report.pid}}));
    note_changes(nullptr, report);
  }
  view_.processes[rank] = std::move(next);
  options_.out->publish(view_);
  commands_->on_process(report);
}

void inspector_state::note_changes(const messages::process_report* before,
                                   const messages::process_report& report) {
  if (!before || before->phase != report.phase)
    options_.out->events()->append(
        "process_state", dumped({{"rank", report.rank}, {"state", process_phase_name(report.phase)}}));
  for (const auto& child : report.children) {
    const auto* old = child_in(before, child);
    if (old && old->is_running == child.is_running && old->starts == child.starts) continue;
    options_.out->events()->append("actor", dumped({{"rank", report.rank},
                                                    {"role", child_name(child.id.role)},
                                                    {"number", child.id.number},
                                                    {"replica", lane_json(child.id, child.id.replica)},
                                                    {"slice", lane_json(child.id, child.id.slice)},
                                                    {"state", child.is_running ? "running" : "ended"},
                                                    {"starts", child.starts},
                                                    {"reason", child.reason}}));
  }
}

void inspector_state::on_scheduler(messages::scheduler_report report) {
  note_steps(report);
  report.steps = {};
  if (report.measured) view_.measured = report.measured;
  if (report.last_training) view_.last_training = report.last_training;
  const auto& before = view_.scheduler;
  if (!before || before->phase != report.phase || before->call != report.call || before->kind != report.kind)
    options_.out->events()->append("call", dumped({{"call", report.call},
                                                   {"kind", call_name(report.kind)},
                                                   {"state", scheduler_phase_name(report.phase)}}));
  if (before && before->pause != report.pause)
    options_.out->events()->append(
        "pause", dumped({{"paused", report.pause.is_paused != 0}, {"stands", report.pause.is_reached != 0}}));
  if (before && before->step_on_disk != report.step_on_disk && report.step_on_disk)
    options_.out->events()->append("snapshot",
                                   dumped({{"step", *report.step_on_disk * steps_of_run(report)}}));
  view_.scheduler = std::move(report);
  view_.steps_per_s = options_.out->metrics().rate(metrics_history::steps_of_rate);
  view_.slowest_step_s = options_.out->metrics().slowest_s(metrics_history::steps_of_rate);
  look_for_faults();
  options_.out->publish(view_);
  commands_->on_scheduler();
}

/// However many steps there were: one event.
void inspector_state::note_steps(const messages::scheduler_report& report) {
  steps_known_ = report.steps.newest;
  auto& history = options_.out->metrics();
  history.add_missed(report.steps.missed);
  for (auto one : report.steps.steps) {
    faults_.add(one);
    one.device_busy_s.clear();  // the history of a long job would be large
    one.step *= steps_of_run(report);
    history.add(one);
  }
  if (report.steps.steps.empty()) return;
  auto newest = history.newest().value();
  options_.out->events()->append("step", dumped({{"step", newest.step},
                                                 {"loss", newest.loss},
                                                 {"at_ms", newest.at_ms},
                                                 {"runs", report.steps.steps.size() + report.steps.missed}}));
}

}  // namespace troupe::actors::inspector
