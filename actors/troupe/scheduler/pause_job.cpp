// scheduler_state: pauses the job, lets it go on, and takes it single steps further.
#include <algorithm>
#include <chrono>
#include <utility>

#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {
namespace {

std::int64_t unix_time_ms() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

}  // namespace

void scheduler_state::on_pause_requested(const pause_requested& wanted) {
  if (wanted.generation != options_.generation) return;  // its supervisor repeats it in this one
  pause_requests_.push_back(wanted);
  carry_out_pause_requests();
}

/// Once all nodes have told what they know of the pause. A step waits until steps are run. A request of a
/// node that did not know the newest state is answered with that state, and repeated.
void scheduler_state::carry_out_pause_requests() {
  if (!knows_pause_) return;
  bool changed = false;
  std::vector<pause_requested> waiting;
  for (const auto& wanted : std::exchange(pause_requests_, {})) {
    if (wanted.based_on != pause_.state().version) {
      tell_pause(wanted.rank);
    } else if (!pause_.can_carry_out(wanted.request)) {
      waiting.push_back(wanted);
    } else {
      auto done = pause_.carry_out(wanted.request, granted_cut(), unix_time_ms());
      options_.log->info("job {} generation={} asked_by={}", done, options_.generation, wanted.rank);
      changed = true;
    }
  }
  pause_requests_.insert(pause_requests_.begin(), waiting.begin(), waiting.end());
  if (!changed) return;
  tell_pause();
  note_standing();
  if (phase_ == phase::running) extend_grant();
}

void scheduler_state::tell_pause() {
  for (int rank = 0; rank < options_.world_size; ++rank) tell_pause(rank);
}

void scheduler_state::tell_pause(int rank) {
  self_->send(options_.supervisors[static_cast<std::size_t>(rank)],
              pause_changed{options_.generation, pause_.state()});
}

void scheduler_state::on_cut_reached(const cut_reached& reached) {
  if (reached.generation != options_.generation || reached.call != activity_.index ||
      phase_ != phase::running)
    return;
  if (!pause_.add(reached.device, reached.position)) return;
  tell_pause();
  note_standing();
}

/// A paused job that has been restored is again where it was, if within a step: the recovery is over.
void scheduler_state::note_standing() {
  if (!pause_.stands() || interrupted_step_ == 0) return;
  interrupted_step_ = 0;
  options_.members->report(options_.generation, recovery_phase::replayed);
}

/// Steps that may be granted to their end.
std::uint64_t scheduler_state::step_limit() const {
  const auto* stop = stop_cut();
  return stop ? std::min(end_, std::ranges::min(stop->devices).step) : end_;
}

/// Where the granted actions end on each device.
cut scheduler_state::granted_cut() const {
  cut granted;
  for (std::size_t device = 0; device < devices_.size(); ++device)
    granted.devices.push_back(
        std::max(plan_position{granted_end_, 0}, within_.empty() ? plan_position{} : within_[device]));
  return granted;
}

/// Grants what a paused job may still do beyond whole steps.
void scheduler_state::grant_within_step() {
  const auto* stop = stop_cut();
  if (!stop || granted_end_ < step_limit()) return;
  auto wanted = stop->devices;
  for (auto& position : wanted) position = std::min(position, plan_position{end_, 0});
  if (wanted == granted_cut().devices || !has_room_for_steps()) return;
  auto last = std::ranges::max(wanted).step;
  if (last > copies_planned_ && limit_by_disk(last) < last) return;
  grant given{options_.generation, activity_,
              ledger_.complete(),  0,
              plan_copies(last),   held_.committed_step(job().parts)};
  for (std::size_t device = 0; device < wanted.size(); ++device) {
    given.end_step = wanted[device].step;
    given.end_action = wanted[device].action;
    self_->send(devices_[device], given);
  }
  within_ = std::move(wanted);
}

}  // namespace troupe
