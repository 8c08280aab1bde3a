// The part of scheduler_state that grants steps and gathers what they come to.
#include <algorithm>
#include <utility>

#include "troupe/program/packed_state.hpp"
#include "troupe/scheduler/scheduler_actor.hpp"
#include "troupe/snapshot/weights_hash.hpp"

namespace troupe {
namespace {

/// Windows of copies in memory that are not committed yet, above which no further steps are granted: each is
/// a whole state, here and on its way to the peer.
constexpr std::uint64_t most_uncommitted_windows = 2;
/// Finished steps that the user's thread has not heard of yet, above which no further steps are granted.
constexpr std::size_t most_untaken_events = 4096;
constexpr auto look_for_user_every = std::chrono::milliseconds(20);

}  // namespace

void scheduler_state::start(call_kind kind, std::uint32_t source, std::uint64_t first, std::uint64_t end) {
  activity_ = request();
  activity_.kind = kind;
  activity_.source = source;
  end_ = stopping_ ? std::min(end, first + 1) : end;
  // What the program has seen done is done again.
  if (kind == call_kind::train && is_cancelled())
    end_ = std::min(end_, std::max(first + 1, interrupted_step_));
  granted_end_ = first;
  last_copy_due_ = first;
  parameters_.clear();
  taken_.clear();
  ledger_ = step_ledger(static_cast<std::uint32_t>(known_.devices.size()), first);
  last_finished_ = now();
  extend_grant();
}

/// Two steps at least: one to compute and one for those who are done with it.
std::uint64_t scheduler_state::window() const {
  auto step_time = copies_.step_time();
  auto least = std::min<std::uint64_t>(2, options_.window);
  if (step_time * static_cast<double>(options_.window) <= options_.window_time) return options_.window;
  return std::max(least, static_cast<std::uint64_t>(options_.window_time / step_time));
}

void scheduler_state::extend_grant() {
  if (non_finite_) return;
  auto until = std::min(end_, ledger_.complete() + window());
  bool first_grant = granted_end_ == ledger_.complete();
  // Not every step: half a window at once.
  if (until <= granted_end_ || (!first_grant && until != end_ && until - granted_end_ < window() / 2)) return;
  if (held_.num_uncommitted(num_stages()) >= most_uncommitted_windows * options_.window) return;
  if (must_wait_for_user()) return;
  until = end_the_disk_allows(until);
  if (until <= granted_end_) return;
  grant given{
      options_.generation, activity_, ledger_.complete(), until, {}, held_.committed_step(num_stages())};
  if (activity_.kind == call_kind::train) given.copies = copies_due(granted_end_ + 1, until);
  granted_end_ = until;
  for (const auto& device : known_.devices) self_->send(device, given);
}

/// Steps wait until the disk has taken earlier snapshots, so that those that the user asked for are written.
/// One that stalls does not stop the training: after a while steps go on, and snapshots are skipped.
std::uint64_t scheduler_state::end_the_disk_allows(std::uint64_t until) {
  if (activity_.kind != call_kind::train || job().snapshots.folder.empty()) return until;
  auto waited = disk_.waiting_for(now());
  if (disk_.num_pending() < disk_snapshots::most_pending) {
    skipping_ = false;
  } else if (waited >= options_.disk_wait_limit && !skipping_) {
    skipping_ = true;
    options_.log->warn(
        "training goes on, snapshots are skipped: the disk has not taken earlier ones for {:.1f} s",
        waited.count());
  }
  if (skipping_) return until;
  auto room = disk_snapshots::most_pending - std::min(disk_snapshots::most_pending, disk_.num_pending());
  for (auto step = granted_end_ + 1; step <= until && step != end_; ++step) {
    if (!snapshot_due(step, job().snapshots.cadence, {}).disk) continue;
    if (room == 0) {
      look_at_disk_later();
      return step - 1;
    }
    --room;
  }
  return until;
}

void scheduler_state::look_at_disk_later() {
  if (std::exchange(will_look_, true)) return;
  self_->delayed_send(self_, options_.disk_wait_limit, disk_waited{});
}

/// The user's thread hears of each step, and computes in its callback as long as it likes.
bool scheduler_state::must_wait_for_user() {
  bool must_wait = options_.client->size() >= most_untaken_events;
  if (must_wait && !waits_for_user_)
    options_.log->warn("the program's callback has not taken in {} finished steps; training waits for it",
                       most_untaken_events);
  waits_for_user_ = must_wait;
  if (must_wait && !std::exchange(will_grant_again_, true))
    self_->delayed_send(self_, look_for_user_every, grant_again{});
  return must_wait;
}

void scheduler_state::on_grant_again() {
  will_grant_again_ = false;
  if (phase_ == phase::running) extend_grant();
}

void scheduler_state::on_step_done(const step_done& done) {
  if (done.generation != options_.generation || done.call != activity_.index || phase_ != phase::running ||
      non_finite_)
    return;
  if (!done.non_finite.empty() && !goes_on_after_non_finite(done)) return;
  result_.last_step.insert(result_.last_step.end(), done.actions.begin(), done.actions.end());
  for (const auto& step : ledger_.add(done)) on_finished(step);
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

/// A call's last state is committed, and on disk if there is a folder, before anyone hears that the call is
/// over.
void scheduler_state::finish_training_if_safe() {
  if (phase_ != phase::running || activity_.kind != call_kind::train || ledger_.complete() < end_) return;
  if (held_.committed_step(num_stages()) < end_ || disk_.is_pending(end_)) return;
  if (stopping_) return end_stopped();
  result_.timing = ledger_.timing();
  if (is_cancelled()) {
    result_.metrics = metrics_;
    return finish_call(result_);
  }
  // What was made up for is no part of this call's result.
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
