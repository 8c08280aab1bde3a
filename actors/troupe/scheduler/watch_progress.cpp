// scheduler_state: detects that no device makes progress and finds the one that the others wait for.
#include <algorithm>

#include "troupe/scheduler/scheduler_actor.hpp"

namespace troupe {
namespace {

/// A node reports only without progress: if it has not reported for this many intervals, it makes progress.
constexpr int intervals_until_stale = 3;

double seconds_of(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

std::string text_of(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

}  // namespace

/// Nodes send node_progress only while a device makes no progress or the program is in a barrier, so normal
/// steps pay nothing for it. Long waits for a call, a restore or the disk are logged and end no process: the
/// user's code and a slow disk may take any time. Only a barrier of a program without a Trainer fails.
void scheduler_state::on_progress(const node_progress& seen) {
  auto limit = options_.progress_timeout;
  if (seen.generation != options_.generation || limit.count() == 0) return;
  stalls_.add(seen, now());
  if (phase_ == phase::running && !stopping_ && pause_.stands()) return waits_since_.reset();
  if (auto what = wait_without_limit(); !what.empty()) return warn_of_wait(what);
  waits_since_.reset();
  if (!known_.job) return;
  auto found = find_stall(
      stalls_.at(now(), intervals_until_stale * progress_interval(limit), activity_, running_plan()));
  if (found.cause == stall_cause::none || found.for_s < seconds_of(limit) / 2) return;
  if (std::exchange(warned_of_, found.problem) != found.problem)
    options_.log->warn("no progress generation={} chain=\"{}\"", options_.generation, found.text);
  if (found.for_s >= seconds_of(limit) && !std::exchange(has_acted_, true)) act_on(found);
}

plan scheduler_state::running_plan() const {
  if (activity_.kind != call_kind::evaluate && activity_.kind != call_kind::predict) return job().training;
  return forward_projection(job().training, activity_.num_microbatches);
}

/// Code that does not return can only be ended with its process, so that process becomes a suspect. A lost
/// message is repeated in a new generation, which the supervisor requests.
void scheduler_state::act_on(const stall& found) {
  auto cause = found.problem + " (no progress within " + text_of(options_.progress_timeout) +
               ", the limit that --progress-timeout sets)";
  options_.log->error("no progress, {} chain=\"{}\"", cause, found.text);
  switch (found.cause) {
    case stall_cause::device:
    case stall_cause::loader:
      return options_.members->suspect(hosts_.member_of({found.device}).rank, cause);
    case stall_cause::lost_tensor:
    case stall_cause::lost_samples:
    case stall_cause::missing_grant:
      self_->send(options_.supervisors[static_cast<std::size_t>(options_.rank)],
                  restart_requested{options_.generation, cause});
      return;
    case stall_cause::deadlock:
      return fail(cause + ". The plan is wrong, which is a bug in Troupe");
    case stall_cause::none:
      return;
  }
}

/// What the job waits for without a time limit; empty while steps are being computed.
std::string scheduler_state::wait_without_limit() const {
  switch (phase_) {
    case phase::gathering:
      return calls_.entered().empty() ? "" : "ranks that have not entered call " + missing_ranks();
    case phase::finding:
      return "the disk, to read a snapshot";
    case phase::restoring:
      return "ranks that have not restored their stages: " + missing_ranks();
    case phase::running:
      break;
  }
  if (non_finite_) return "the disk, to write the last finite state";
  bool is_computed = ledger_.complete() >= granted_end_ && pause_.has_reached(within_);
  if (activity_.kind == call_kind::gather || (activity_.kind == call_kind::predict && is_computed))
    return "programs that have not received the tensors of call " + std::to_string(activity_.index) +
           ": ranks " + ranks_without_tensors();
  if (!is_computed || activity_.kind == call_kind::hash) return {};
  if (waits_for_user_) return "the program's callback, which has not handled the finished steps";
  return "copies of step " + std::to_string(granted_end_) + " to be kept in memory and on disk";
}

std::string scheduler_state::ranks_without_tensors() const {
  std::string ranks;
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (activity_.delivers_to(rank) && !taken_.contains(rank))
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return ranks;
}

/// Before a call: its number and the ranks that have not entered it. In a restore: the ranks that have not
/// restored.
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
  if (now() - *waits_since_ >= options_.progress_timeout && !known_.job && !std::exchange(has_acted_, true))
    return fail("World::barrier waits for " + what + " (not within " + text_of(options_.progress_timeout) +
                ", the limit that --progress-timeout sets; 0 is none)");
  if (now() - *waits_since_ < options_.progress_timeout / 2 || warned_of_ == what) return;
  warned_of_ = what;
  options_.log->warn("no progress generation={} for={:.1f}s, waiting for {}", options_.generation,
                     std::chrono::duration<double>(now() - *waits_since_).count(), what);
}

}  // namespace troupe
