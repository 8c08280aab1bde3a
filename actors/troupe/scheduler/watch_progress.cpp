// The part of scheduler_state that notices when no device makes progress, and finds the one that the others
// wait for.
#include <algorithm>

#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {
namespace {

/// A node that has said nothing for so many of its intervals has gone on meanwhile.
constexpr int intervals_until_stale = 3;

double seconds_of(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

std::string text_of(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

}  // namespace

/// Comes only while the sender's devices stand still, so that it costs nothing on the way of a step. Long
/// waits for a call, a restore or a disk are reported; they end no process, because what they wait for may
/// take as long as it likes: the user's own code, or a slow disk.
void scheduler_state::on_progress(const node_progress& seen) {
  auto limit = options_.progress_timeout;
  if (seen.generation != options_.generation || limit.count() == 0) return;
  stalls_.add(seen, now());
  if (auto what = wait_without_limit(); !what.empty()) return warn_of_wait(what);
  waits_since_.reset();
  auto found = find_stall(
      stalls_.at(now(), intervals_until_stale * progress_interval(limit), activity_, running_plan()));
  if (found.cause == stall_cause::none || found.for_s < seconds_of(limit) / 2) return;
  if (std::exchange(warned_of_, found.what) != found.what)
    options_.log->warn("no progress generation={} chain=\"{}\"", options_.generation, found.text);
  if (found.for_s >= seconds_of(limit) && !std::exchange(has_acted_, true)) act_on(found);
}

plan scheduler_state::running_plan() const {
  if (activity_.kind != call_kind::evaluate && activity_.kind != call_kind::predict) return job().training;
  return make_plan({schedule_kind::forward_only, job().training.num_stages, activity_.num_microbatches,
                    job().training.num_devices()});
}

/// What does not return cannot be stopped from outside but with its process. What was lost on the way comes
/// again in a new generation.
void scheduler_state::act_on(const stall& found) {
  auto cause = found.what + " (no progress within " + text_of(options_.progress_timeout) +
               ", the limit that --progress-timeout sets)";
  options_.log->error("no progress, {} chain=\"{}\"", cause, found.text);
  switch (found.cause) {
    case stall_cause::device:
    case stall_cause::loader:
      return options_.members->suspect(job().rank_of_device(found.device), cause);
    case stall_cause::lost_tensor:
    case stall_cause::lost_samples:
    case stall_cause::missing_grant:
      self_->send(options_.supervisors[static_cast<std::size_t>(options_.rank)],
                  restart_wanted{options_.generation, cause});
      return;
    case stall_cause::waits_in_circle:
      return fail(cause + ". The plan is wrong, which is a mistake in Troupe");
    case stall_cause::none:
      return;
  }
}

/// What the job waits for that may take as long as it likes; empty where steps are being computed.
std::string scheduler_state::wait_without_limit() const {
  switch (phase_) {
    case phase::gathering:
      return calls_.entered().empty() ? "" : "ranks that have not entered call " + missing_ranks();
    case phase::finding:
      return "the disk, to give a snapshot";
    case phase::restoring:
      return "ranks that have not restored their stages: " + missing_ranks();
    case phase::running:
      break;
  }
  if (non_finite_) return "the disk, to take the last finite state";
  bool is_computed = ledger_.complete() >= granted_end_;
  if (activity_.kind == call_kind::gather || (activity_.kind == call_kind::predict && is_computed))
    return "programs that have not taken what call " + std::to_string(activity_.index) +
           " gives them: ranks " + ranks_not_given();
  if (!is_computed || activity_.kind == call_kind::hash) return {};
  if (waits_for_user_) return "the program's callback, which has not taken in the steps that are done";
  return "copies of step " + std::to_string(granted_end_) + " to be kept in memory and on disk";
}

std::string scheduler_state::ranks_not_given() const {
  std::string ranks;
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (activity_.gives_to(rank) && !taken_.contains(rank))
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return ranks;
}

/// Of a call that has not begun: its number and who is not in it; of a restore: who has not done it.
std::string scheduler_state::missing_ranks() const {
  std::string missing;
  bool is_entering = phase_ == phase::gathering;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    auto found = calls_.entered().find(rank);
    bool is_here = is_entering ? found != calls_.entered().end() && found->second.index >= num_completed()
                               : static_cast<bool>(node_restored_[static_cast<std::size_t>(rank)]);
    if (!is_here) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  return is_entering ? std::to_string(num_completed()) + ": " + missing : missing;
}

void scheduler_state::warn_of_wait(const std::string& what) {
  if (what.empty()) return waits_since_.reset();
  if (!waits_since_ || waits_for_ != what) {
    waits_since_ = now();
    waits_for_ = what;
    return;
  }
  if (now() - *waits_since_ < options_.progress_timeout / 2 || warned_of_ == what) return;
  warned_of_ = what;
  options_.log->warn("no progress generation={} for={:.1f}s, waiting for {}", options_.generation,
                     std::chrono::duration<double>(now() - *waits_since_).count(), what);
}

}  // namespace troupe
