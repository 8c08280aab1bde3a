#include "troupe/supervisor/supervisor_actor.hpp"

#include <unistd.h>

#include <algorithm>
#include <caf/exit_reason.hpp>
#include <random>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/actor/counted_actor.hpp"
#include "troupe/inspector/views/job_view.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/snapshot_writer.hpp"
#include "troupe/posix/unix_time.hpp"
#include "troupe/program/device_memory.hpp"
#include "troupe/scheduler/progress_watch.hpp"
#include "troupe/tensor/memory.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe::actors::supervisor {
namespace {

/// After the failure of a group: until a fence comes, if the agent has noticed the same.
constexpr auto time_for_fence = std::chrono::seconds(2);

messages::process_memory_report memory_now() {
  auto process = program::memory_of_process();
  auto tensors = memory_of({});
  auto of = [&](memory_category one) { return tensors.by_category[static_cast<std::size_t>(one)]; };
  return {process.resident,
          process.peak_resident,
          tensors.current,
          tensors.peak,
          of(memory_category::parameters),
          of(memory_category::gradients),
          of(memory_category::optimizer),
          of(memory_category::activations),
          of(memory_category::other)};
}

}  // namespace

supervisor_state::supervisor_state(caf::event_based_actor* self, supervisor_options options)
    : self_(self),
      options_(std::move(options)),
      own_counters_(actor::counters_of(self)),
      completed_(std::make_shared<job::call_log>(
          [log = options_.log](const std::string& problem) { log->warn("{}", problem); },
          std::filesystem::path(),
          options_.keeps_results ? job::kept_results::all : job::kept_results::for_steps)),
      children_(self, options_),
      tree_(options_.restarts),
      connections_(self, options_),
      generations_(self, options_, children_, connections_, tree_, completed_),
      calls_(self, options_, generations_, connections_, children_, pauses_, completed_),
      restore_(self, options_, generations_, connections_, children_),
      io_(self, options_, generations_, connections_, children_, restore_),
      inspector_restarts_(options_.restarts.io),
      ends_(self, options_, children_, tree_, inspector_restarts_) {
  self_->set_down_handler([this](const caf::down_msg& down) { on_down(down); });
  self_->set_exception_handler([this](std::exception_ptr& thrown) {
    auto problem = actor::error_from(thrown);
    generations_.give_up("the supervisor of rank " + std::to_string(options_.rank) +
                         " failed: " + actor::describe(problem));
    return problem;
  });
  history_.started_ms = posix::unix_now_ms();
  begin_watching();
  if (options_.inspected) children_.start_inspector();
}

caf::behavior supervisor_state::make_behavior() {
  return {[this](const messages::define_job& command) { on_define(command); },
          [this](const messages::add_source& added) { children_.add_source(added); },
          [this](const messages::enter_call& entered) { calls_.enter(entered.request); },
          [this](const messages::program_received& received) { on_program_received(received); },
          [this](const messages::fetch_cached& wanted) { calls_.fetch(wanted.request); },
          [this](const messages::cancel_call& command) { generations_.tell_cancelled(command.call); },
          [this](const messages::request_pause& command) { on_request_pause(command); },
          [this](const messages::pause_changed& changed) { on_pause_changed(changed); },
          [this](const messages::carry_out_pause& command) { return on_carry_out_pause(command); },
          [this](const messages::end_actor& command) { return ends_.end(command); },
          [this](const messages::end_process& command) { return ends_.end(command); },
          [this](const messages::end_process_now& due) { ends_.on_due(due); },
          [this](const messages::set_log_level& command) { return ends_.set(command); },
          [this](const messages::fence_raised& fence) { on_fence(fence); },
          [this](const messages::view_formed& formed) { on_view(formed); },
          [this](const messages::restore_command& command) { restore_.begin(command); },
          [this](const messages::snapshot_failed& failed) { on_snapshot_failed(failed); },
          [this](const messages::write_copies& command) { on_write_copies(command); },
          [this](const messages::replicate_copies& command) { on_replicate(command); },
          [this](const messages::copies_committed& committed) { restore_.on_committed(committed); },
          [this](const messages::restart_due& due) { io_.on_due(due); },
          [this](const messages::state_arrived& arrived) { restore_.on_state(arrived); },
          [this](const messages::want_results& wanted) { return calls_.results_from(wanted.first); },
          [this](const messages::inspect_process& asked) { return on_inspect(asked); },
          [this](const messages::call_finished& finished) { return calls_.finish(finished); },
          [this](const messages::peer_broken& broken) { on_peer_broken(broken); },
          [this](const messages::replica_group_failed& failed) { on_group_failed(failed); },
          [this](const messages::tensor_lost& lost) { on_tensor_lost(lost); },
          [this](const messages::link_failed& failed) { on_link_failed(failed); },
          [this](const messages::restart_requested& wanted) { on_restart_requested(wanted); },
          [this](const messages::check_progress&) { on_check_progress(); },
          [this](const messages::check_stopping& check) { generations_.on_check_stopping(check); },
          [this](const messages::generation_requested& wanted) {
            options_.members->request_generation(wanted.current, wanted.cause);
          },
          [this](const messages::recovery_done& done) { on_recovered(done); },
          [this](const messages::stop_requested& wanted) { generations_.tell_stop(wanted.signal); },
          [this](const job::job_done& done) { on_job_over(done); },
          [this](const messages::job_was_stopped& done) {
            on_job_over(job::job_stop{done.signal, done.summary});
          },
          [this](const messages::job_ended& ended) {
            on_job_over(job::job_failure{ended.cause, ended.kind});
          }};
}

// ---- the job and the generation

void supervisor_state::on_define(const messages::define_job& command) {
  if (children_.has_job()) forget_job();
  children_.begin_job(command.job);
  connections_.publish(children_);
  if (generation().is_active()) generations_.tell_job();
}

/// Stops the children of the previous job, all of whose calls are over.
void supervisor_state::forget_job() {
  children_.stop_all();
  generations_.forget_job();
  io_.forget_job();
  restore_.forget_job();
  calls_.forget_job();
}

void supervisor_state::on_fence(const messages::fence_raised& fence) {
  if (fence.generation <= generation().number) return;
  log_dropped_frames();
  trace::emit_now({.generation = fence.generation, .kind = trace::trace_kind::fence});
  restore_.cancel();
  generations_.quiesce(fence);
}

void supervisor_state::on_view(const messages::view_formed& formed) {
  if (!generations_.begin(formed.view)) return;
  trace::emit_now({.generation = generation().number, .kind = trace::trace_kind::view});
  calls_.begin_generation();
  pauses_.begin_generation();
  send_pause_request();
  if (children_.inspector()) self_->send(children_.inspector(), connections_.inspected());
}

void supervisor_state::on_recovered(const messages::recovery_done& done) {
  trace::emit_now({.generation = done.report.generation, .kind = trace::trace_kind::restore});
  generations_.on_recovered(done.report.generation);
  history_.add({done.report, posix::unix_now_ms()});
  options_.client->put(done.report);
  if (children_.inspector()) self_->send(children_.inspector(), messages::inspected_recovery{done.report});
}

void supervisor_state::on_job_over(const job::client_event& event) {
  log_dropped_frames();
  options_.client->put(event);
}

/// At the end of each generation and of the job.
void supervisor_state::log_dropped_frames() {
  auto report = dropped_.next(options_.gate->statistics(), options_.out->statistics());
  if (!report) return;
  auto level = report->is_foreign ? spdlog::level::warn : spdlog::level::info;
  options_.log->log(level, "frames dropped generation={} {}", generation().number, report->text);
}

// ---- from the program

void supervisor_state::on_program_received(const messages::program_received& received) {
  if (generation().runs(received.generation))
    self_->send(connections_.scheduler(), messages::gathered_received{generation().number, options_.rank,
                                                                      received.call, received.problem});
}

/// The id is drawn, because an earlier process of this rank may have made requests too.
std::uint64_t supervisor_state::add_pause(job::pause_request request) {
  std::random_device random;
  request.id = std::uint64_t{random()} << 32 | random();
  pauses_.add(request);
  return request.id;
}

void supervisor_state::on_request_pause(const messages::request_pause& command) {
  add_pause(command.request);
  send_pause_request();
}

caf::result<messages::pause_carried_out> supervisor_state::on_carry_out_pause(
    const messages::carry_out_pause& command) {
  auto promise = self_->make_response_promise<messages::pause_carried_out>();
  pause_answers_[add_pause(command.request)] = promise;
  send_pause_request();
  return promise;
}

void supervisor_state::answer_pauses() {
  for (auto [id, version] : pauses_.take_carried_out())
    if (auto found = pause_answers_.find(id); found != pause_answers_.end()) {
      found->second.deliver(messages::pause_carried_out{version});
      pause_answers_.erase(found);
    }
}

void supervisor_state::send_pause_request() {
  if (!generation().is_active()) return;
  if (auto next = pauses_.next())
    self_->send(connections_.scheduler(),
                messages::pause_requested{generation().number, options_.rank, next->based_on, next->request});
}

// ---- from the scheduler

void supervisor_state::on_pause_changed(const messages::pause_changed& changed) {
  if (changed.generation != generation().number || !pauses_.learn(changed.state)) return;
  options_.pause->set(changed.state);
  answer_pauses();
  send_pause_request();
}

void supervisor_state::on_snapshot_failed(const messages::snapshot_failed& failed) {
  if (failed.generation == generation().number && children_.snapshot_writer())
    self_->send(children_.snapshot_writer(), messages::discard_parts{failed.step});
}

void supervisor_state::on_write_copies(const messages::write_copies& command) {
  if (command.generation != generation().number) return;
  for (const auto& [number, stage] : children_.stages())
    self_->send(stage, messages::write_copy{command.step});
}

void supervisor_state::on_replicate(const messages::replicate_copies& command) {
  if (command.generation != generation().number) return;
  for (const auto& [number, stage] : children_.stages()) self_->send(stage, messages::replicate_again{});
}

void supervisor_state::on_restart_requested(const messages::restart_requested& wanted) {
  if (generation().runs(wanted.generation)) generations_.request_after_stall(wanted.cause, wanted.cause);
}

// ---- failures

void supervisor_state::on_down(const caf::down_msg& down) {
  auto failed = children_.remove(down.source);
  if (!failed || !down.reason || down.reason == caf::exit_reason::user_shutdown) return;
  auto name = to_string(*failed), reason = actor::describe(down.reason);
  trace::emit_now({.generation = generation().number,
                   .kind = trace::trace_kind::actor_failed,
                   .name = trace::name_number(name)});
  children_.ledger().failed(*failed, reason);
  if (failed->role == child_role::inspector) return on_inspector_down(reason);
  auto cause = name + " on rank " + std::to_string(options_.rank) + " failed: " + reason;
  if (failed->role == child_role::peer_copy_store) note_replicas_lost();
  if (actor::is_bad_input(down.reason)) {
    options_.log->error("actor failed actor=\"{}\" reason=\"{}\"", name, reason);
    return generations_.fail_job(cause, failure_kind::bad_input);
  }
  if (down.reason == actor::actor_error::device_lost) return on_device_lost(cause);
  tree_.set_branches(children_.branches());
  auto command = ends_.take_requested_restart(*failed) ? tree_.on_requested_restart(*failed)
                                                       : tree_.on_failure(*failed, self_->clock().now());
  log_restart(command, name, reason);
  if (command.action == restart_action::restart)
    io_.restart_later(command);
  else
    generations_.carry_out(command, cause);
}

/// Another actor of this process would fail as this one has.
void supervisor_state::on_device_lost(const std::string& cause) {
  options_.log->error("{}: {}", cause,
                      options_.is_replaced ? "this process ends, and another one replaces it"
                                           : "`troupe launch` would replace this process");
  if (!options_.is_replaced) return generations_.fail_job(cause, failure_kind::error);
  options_.log->flush();
  options_.kill_process();
}

/// Who watches the job must not end it.
void supervisor_state::on_inspector_down(const std::string& reason) {
  const child_id inspector{child_role::inspector, 0};
  if (ends_.take_requested_restart(inspector))
    return io_.restart_later({restart_action::restart, {inspector}, {}, 0});
  auto delay = inspector_restarts_.restart(self_->clock().now());
  if (!delay)
    return options_.log->error(
        "actor failed actor=\"the inspector\" reason=\"{}\": the job goes on without it", reason);
  options_.log->warn("actor failed actor=\"the inspector\" reason=\"{}\" restarts=\"the inspector\"", reason);
  io_.restart_later({restart_action::restart, {inspector}, *delay, 0});
}

/// At once, since the scheduler must not take a step for committed whose second copy is gone.
void supervisor_state::note_replicas_lost() {
  restore_.note_replicas_lost();
  calls_.lose_replicas();
  if (generation().is_active())
    self_->send(connections_.scheduler(), messages::replicas_lost{generation().number, options_.rank});
}

/// warn, since the job recovers; error: the job ends.
void supervisor_state::log_restart(const restart_command& command, const std::string& actor,
                                   const std::string& reason) const {
  if (command.action == restart_action::fail_job)
    return options_.log->error("actor failed actor=\"{}\" reason=\"{}\"", actor, reason);
  std::string again;
  for (const auto& one : command.children) again += (again.empty() ? "" : ", ") + to_string(one);
  bool alone = command.action == restart_action::restart;
  auto delay_ms = std::chrono::duration_cast<std::chrono::milliseconds>(command.delay).count();
  options_.log->warn(
      "actor failed actor=\"{}\" reason=\"{}\" restarts=\"{}\" new_generation={} earlier_restarts={} "
      "delay_ms={}",
      actor, reason, again, alone ? "no" : "yes", command.num_earlier, delay_ms);
}

/// An error of an earlier generation may be about a process that has been replaced since.
void supervisor_state::on_peer_broken(const messages::peer_broken& broken) {
  if (generation().runs(broken.generation)) options_.members->suspect(broken.rank, broken.cause);
}

/// Where a process was lost, the agent begins a generation by itself, and this is no restart of compute. All
/// groups of a process may fail at once, which counts once. If no step is completed between two failures, as
/// where processes cannot reach each other, generations do not help.
void supervisor_state::on_group_failed(const messages::replica_group_failed& failed) {
  if (!generation().runs(failed.generation)) return;
  auto cause =
      "replicas cannot add up gradients on rank " + std::to_string(options_.rank) + ": " + failed.cause;
  if (failed.kind == failure_kind::bad_input) return generations_.fail_job(cause, failed.kind);
  if (!failed.is_due) {
    auto due = failed;
    due.is_due = true;
    return self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()), time_for_fence, due);
  }
  options_.log->warn("{}", cause);
  if (std::exchange(group_failed_in_, failed.generation) == failed.generation) return;
  std::uint64_t step = 0;
  for (const auto& device : children_.progress().positions()) step = std::max(step, device.position.step);
  generations_.request_after_stall(cause, "groups of replicas at step " + std::to_string(step));
}

/// A tensor that is not authenticated has an unknown sender (rank -1) and is ignored, since any process may
/// send to a port. If it was a damaged tensor of the job, the wait for it shows as a stall.
void supervisor_state::on_tensor_lost(const messages::tensor_lost& lost) {
  if (!generation().runs(lost.generation)) return;
  auto cause = "a tensor " +
               (lost.rank < 0 ? std::string() : "from rank " + std::to_string(lost.rank) + " ") +
               "was lost on rank " + std::to_string(options_.rank) + ": " + lost.cause;
  options_.log->warn("{}", cause);
  if (lost.rank >= 0) generations_.request(cause);
}

void supervisor_state::on_link_failed(const messages::link_failed& failed) {
  if (!generation().runs(failed.generation)) return;
  auto cause = "the link to rank " + std::to_string(failed.rank) + " on rank " +
               std::to_string(options_.rank) + " failed: " + failed.cause;
  options_.log->warn("{}", cause);
  generations_.request(cause);
}

messages::process_report supervisor_state::on_inspect(const messages::inspect_process& asked) {
  history_.learn(asked.history);
  messages::process_report report;
  report.generation = generation().number;
  report.rank = options_.rank;
  report.incarnation = options_.incarnation;
  report.pid = ::getpid();
  report.host = options_.host;
  report.phase = static_cast<std::uint8_t>(generation().now);
  if (own_counters_) report.supervisor = own_counters_->read();
  report.children = children_.ledger().report();
  report.devices = children_.progress().positions();
  report.loader_changes = children_.progress().loader_changes();
  if (options_.collectives) report.collectives = options_.collectives();
  auto counted = options_.out->statistics();
  report.control_frames_sent = counted.control_frames_sent;
  report.control_frames_received = counted.control_frames_received;
  report.tensors_sent = counted.tensors_sent;
  report.tensors_received = counted.tensors_received;
  report.tensor_bytes_sent = counted.tensor_bytes_sent;
  report.tensor_bytes_received = counted.tensor_bytes_received;
  report.tensor_bytes_shared = counted.tensor_bytes_shared;
  report.stale_frames = counted.stale_frames;
  report.bad_frames = counted.bad_frames;
  report.core_wait_ns = core_wait_.total_ns();
  report.memory = memory_now();
  report.device_memory = children_.device_memory();
  report.history = asked.wants_history != 0 ? history_ : history_.summary();
  for (const auto& [rank, peer] : counted.peers) report.peers.push_back({rank, peer});
  return report;
}

// ---- progress of devices and loader

/// Heartbeats come from another thread and show only that the process is alive.
void supervisor_state::begin_watching() {
  if (options_.progress_timeout.count() == 0) return;
  progress_checked_ = self_->clock().now();
  self_->delayed_send(caf::actor_cast<caf::actor>(self_->address()),
                      scheduler::progress_interval(options_.progress_timeout), messages::check_progress{});
}

void supervisor_state::on_check_progress() {
  auto limit = std::chrono::duration<double>(options_.progress_timeout);
  auto& progress = children_.progress();
  // Time in which the process or machine was suspended does not count.
  std::chrono::duration<double> most = 2 * scheduler::progress_interval(options_.progress_timeout);
  std::chrono::duration<double> elapsed = self_->clock().now() - progress_checked_;
  progress.sample(std::min(elapsed, most));
  begin_watching();
  if (auto stuck = progress.stuck(limit.count());
      !stuck.empty() && options_.stuck && !options_.stuck->exchange(true))
    options_.log->warn("{} of this process does not return from the program's code", stuck);
  // A program without a Trainer has no devices to report, but may wait in a barrier.
  bool stands_still = progress.longest_s() >= limit.count() / 4 || calls_.is_in_barrier();
  if (!generation().is_active() || !stands_still) return;
  messages::process_progress told{generation().number, options_.rank, {}, 0, 0};
  progress.describe(told);
  self_->send(connections_.scheduler(), told);
}

}  // namespace troupe::actors::supervisor
