// scheduler_state: grants steps to devices and collects their results.
#include <algorithm>
#include <utility>

#include "troupe/program/packed_state.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"
#include "troupe/snapshot/weights_hash.hpp"

namespace troupe {
namespace {

/// Bound of uncommitted copies in memory, in windows of steps: above it no steps are granted. Each copy is a
/// whole state, in the own memory and in flight to the peer.
constexpr std::uint64_t max_uncommitted_windows = 2;
/// Bound of progress events queued for the user's thread: above it no steps are granted.
constexpr std::size_t max_untaken_events = 4096;
constexpr auto look_for_user_every = std::chrono::milliseconds(20);

}  // namespace

void scheduler_state::start(call_kind kind, std::uint32_t source, std::uint64_t first, std::uint64_t end) {
  activity_ = request();
  activity_.kind = kind;
  activity_.source = source;
  end_ = stopping_ ? std::min(end, first + 1) : end;
  // Steps that the program saw complete before a failure are replayed even if the call is cancelled.
  if (kind == call_kind::train && is_cancelled())
    end_ = std::min(end_, std::max(first + 1, interrupted_step_));
  granted_end_ = copies_planned_ = first;
  within_.clear();
  last_copy_due_ = first;
  parameters_.clear();
  taken_.clear();
  ledger_ = step_tracker(static_cast<std::uint32_t>(devices_.size()), first);
  last_finished_ = now();
  if (kind != call_kind::hash && kind != call_kind::gather)
    pause_.begin(
        {activity_.index, kind, kind == call_kind::train && !takes_new_steps_, running_plan(), first, end_});
  if (pause_.is_paused()) tell_pause();
  carry_out_pause_requests();
  extend_grant();
}

/// At least two steps: one in progress and one for devices that have finished it.
std::uint64_t scheduler_state::window() const {
  auto step_time = copies_.step_time();
  auto least = std::min<std::uint64_t>(2, options_.window);
  if (step_time * static_cast<double>(options_.window) <= options_.window_time) return options_.window;
  return std::max(least, static_cast<std::uint64_t>(options_.window_time / step_time));
}

void scheduler_state::extend_grant() {
  if (non_finite_) return;
  grant_steps();
  grant_within_step();
}

void scheduler_state::grant_steps() {
  auto limit = step_limit();
  auto until = std::min(limit, ledger_.complete() + window());
  bool first_grant = granted_end_ == ledger_.complete();
  // Grant half a window at once, to send fewer messages.
  if (until <= granted_end_ || (!first_grant && until != limit && until - granted_end_ < window() / 2))
    return;
  if (!has_room_for_steps()) return;
  until = limit_by_disk(until);
  if (until <= granted_end_) return;
  grant given{options_.generation, activity_,
              ledger_.complete(),  until,
              plan_copies(until),  held_.committed_step(job().parts)};
  granted_end_ = until;
  for (const auto& device : devices_) self_->send(device, given);
}

/// Whether the copies of earlier steps are safe and the user's thread has heard of enough of them.
bool scheduler_state::has_room_for_steps() {
  return held_.num_uncommitted(job().parts) < max_uncommitted_windows * options_.window && !is_user_behind();
}

/// The copies due up to this step that were not planned yet.
std::vector<due_copy> scheduler_state::plan_copies(std::uint64_t until) {
  if (until <= copies_planned_) return {};
  auto first = std::exchange(copies_planned_, until) + 1;
  return activity_.kind == call_kind::train ? copies_due(first, until) : std::vector<due_copy>();
}

/// Limits a grant so that steps wait while max_pending snapshots are being written: the snapshots that the
/// user configured are then all written. After disk_wait_limit steps continue and snapshots are skipped
/// instead.
std::uint64_t scheduler_state::limit_by_disk(std::uint64_t until) {
  if (activity_.kind != call_kind::train || job().snapshots.folder.empty()) return until;
  auto waited = disk_.waiting_for(now());
  if (disk_.num_pending() < disk_snapshots::max_pending) {
    skipping_ = false;
  } else if (waited >= options_.disk_wait_limit && !skipping_) {
    skipping_ = true;
    options_.log->warn(
        "training continues, snapshots are skipped: the disk has not written earlier ones for {:.1f} s",
        waited.count());
  }
  if (skipping_) return until;
  auto room = disk_snapshots::max_pending - std::min(disk_snapshots::max_pending, disk_.num_pending());
  for (auto step = granted_end_ + 1; step <= until && step != end_; ++step) {
    if (!snapshot_due(step, job().snapshots.cadence, {}).disk) continue;
    if (room == 0) {
      check_disk_wait_later();
      return step - 1;
    }
    --room;
  }
  return until;
}

void scheduler_state::check_disk_wait_later() {
  if (std::exchange(check_disk_wait_pending_, true)) return;
  self_->delayed_send(self_, options_.disk_wait_limit, check_disk_wait{});
}

/// The user's thread gets an event per step and may be slow; its queue is bounded by holding up grants.
bool scheduler_state::is_user_behind() {
  bool must_wait = options_.client->size() >= max_untaken_events;
  if (must_wait && !waits_for_user_)
    options_.log->warn("the program's callback has not handled {} finished steps; training waits for it",
                       max_untaken_events);
  waits_for_user_ = must_wait;
  if (must_wait && !std::exchange(retry_grant_pending_, true))
    self_->delayed_send(self_, look_for_user_every, retry_grant{});
  return must_wait;
}

void scheduler_state::on_retry_grant() {
  retry_grant_pending_ = false;
  if (phase_ == phase::running) extend_grant();
}

void scheduler_state::on_step_done(const step_done& done) {
  if (done.generation != options_.generation || done.call != activity_.index || phase_ != phase::running ||
      non_finite_)
    return;
  if (!done.non_finite.empty() && !continues_after_non_finite(done)) return;
  result_.last_step.insert(result_.last_step.end(), done.actions.begin(), done.actions.end());
  for (const auto& step : ledger_.add(done)) on_finished(step);
  if (pause_.add(done.device, {done.step + 1, 0})) {
    tell_pause();
    note_standing();
  }
  extend_grant();
  if (ledger_.complete() < end_) return;
  if (activity_.kind == call_kind::evaluate) return finish_call(result_);
  if (activity_.kind == call_kind::predict) return finish_if_all_taken();
  finish_training_if_safe();
}

void scheduler_state::on_finished(const finished_step& step) {
  if (activity_.kind == call_kind::evaluate) {
    result_.metrics += step.metrics;
    return;
  }
  if (activity_.kind == call_kind::predict) return;
  auto finished = now();
  copies_.observe(std::chrono::duration<double>(finished - last_finished_).count(), step.copy_s);
  last_finished_ = finished;
  position_ = step.step + 1;
  disk_.copied(position_, finished);
  metrics_ = step.metrics;
  options_.client->put(step_progress{position_, end_, step.metrics});
  options_.members->report(job_progress{options_.generation, position_, end_, step.metrics.mean_loss()});
  if (interrupted_step_ != 0 && position_ >= interrupted_step_) {
    interrupted_step_ = 0;
    options_.members->report(options_.generation, recovery_phase::replayed);
  }
}

/// Finishes a training call only when its last state is committed, and on disk if there is a folder.
void scheduler_state::finish_training_if_safe() {
  if (phase_ != phase::running || activity_.kind != call_kind::train || ledger_.complete() < end_) return;
  if (held_.committed_step(job().parts) < end_ || disk_.is_pending(end_)) return;
  if (stopping_) return end_stopped();
  result_.timing = ledger_.timing();
  if (is_cancelled()) {
    result_.metrics = metrics_;
    return finish_call(result_);
  }
  // Replayed steps of earlier calls are no part of this call's result.
  if (request().kind != call_kind::train || position_ < request().target_step) result_ = empty_result();
  continue_call();
}

void scheduler_state::on_parameters(const parameters_arrived& arrived) {
  if (arrived.generation != options_.generation || arrived.call != activity_.index ||
      activity_.kind != call_kind::hash)
    return;
  parameters_[arrived.stage] = arrived.packed;
  if (parameters_.size() < num_stages()) return;
  std::vector<named_tensor> all;
  for (const auto& [stage, packed] : parameters_)
    for (auto& parameter : unpack_state(packed)) all.push_back(std::move(parameter));
  result_.weights_sha256 = weights_sha256(std::move(all));
  parameters_.clear();
  finish_call(result_);
}

}  // namespace troupe
