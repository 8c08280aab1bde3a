#include "troupe/scheduler/progress_watch.hpp"

#include <algorithm>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/messages/position_in_call.hpp"
#include "troupe/messages/supervisor.hpp"

namespace troupe::actors::scheduler {
namespace {

/// A process reports only without progress: if it has not reported for this many intervals, it makes
/// progress.
constexpr int intervals_until_stale = 3;
/// Processes take so many samples within the limit, but none more often than this.
constexpr int samples_within_limit = 16;
constexpr std::chrono::milliseconds least_interval{20};
constexpr std::chrono::milliseconds least_limit = samples_within_limit * least_interval;

double seconds_of(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

std::string text_of(std::chrono::milliseconds time) {
  return time.count() % 1000 == 0 ? std::to_string(time.count() / 1000) + " s"
                                  : std::to_string(time.count()) + " ms";
}

}  // namespace

std::chrono::milliseconds progress_interval(std::chrono::milliseconds progress_timeout) {
  using std::chrono::milliseconds;
  return std::clamp<milliseconds>(progress_timeout / samples_within_limit, least_interval,
                                  milliseconds(10'000));
}

void check_progress_timeout(std::chrono::milliseconds progress_timeout) {
  if (progress_timeout.count() == 0 || progress_timeout >= least_limit) return;
  throw bad_input("--progress-timeout: expected at least " + std::to_string(least_limit.count()) +
                  "ms, or 0 for never, got " + std::to_string(progress_timeout.count()) +
                  "ms. Progress is looked at every " + std::to_string(least_interval.count()) +
                  "ms at most, and a limit needs " + std::to_string(samples_within_limit) +
                  " such looks; choose one above the longest action");
}

void stall_watch::add(const messages::process_progress& seen, time_point now) {
  processes_[seen.rank] = {now, seen};
}

schedule::job_positions stall_watch::at(time_point now, std::chrono::milliseconds fresh_for,
                                        const job::call_request& activity, plan running) const {
  schedule::job_positions seen;
  seen.devices.resize(static_cast<std::size_t>(running.num_job_devices()));
  seen.loaders.resize(seen.devices.size());
  for (const auto& [rank, latest] : processes_) {
    if (now - latest.when > fresh_for) continue;
    for (const auto& told : latest.report.devices) {
      if (told.device >= seen.devices.size()) continue;
      auto num_actions = running.actions_of(static_cast<int>(told.device)).size();
      seen.devices[told.device] = position_in_call(told, activity, num_actions);
      seen.loaders[told.device] = {latest.report.loader_is_working != 0, latest.report.loader_for_s};
    }
  }
  seen.running = std::move(running);
  return seen;
}

/// Processes send process_progress only while a device makes no progress or the program is in a barrier, so
/// normal steps pay nothing for it. Long waits for a call, a restore or the disk are logged and end no
/// process: the user's code and a slow disk may take any time. Only a barrier of a program without a Trainer
/// fails.
void progress_watch::on_progress(const messages::process_progress& seen) {
  auto limit = options_.progress_timeout;
  if (seen.generation != options_.generation || limit.count() == 0) return;
  auto now = self_->clock().now();
  stalls_.add(seen, now);
  if (job_.is_running() && !job_.is_stopping && calls_.pause().stands()) return waits_since_.reset();
  auto what = wait_without_limit();
  if (!what.empty() && !waits_for_copies()) return warn_of_wait(what, now);
  if (!job_.known.job) return;
  auto found = find_stall(stalls_.at(now, intervals_until_stale * progress_interval(limit),
                                     calls_.credits().activity(), calls_.running_plan()));
  // Of a device on a GPU a copy of the state may hang when all steps are done.
  if (!what.empty() && found.cause != schedule::stall_cause::device) return warn_of_wait(what, now);
  waits_since_.reset();
  if (found.cause == schedule::stall_cause::none || found.for_s < seconds_of(limit) / 2) return;
  if (std::exchange(warned_of_, found.problem) != found.problem)
    options_.log->warn("no progress generation={} chain=\"{}\"", options_.generation, found.text);
  if (found.for_s >= seconds_of(limit) && !std::exchange(has_acted_, true)) act_on(found);
}

/// Code that does not return can only be ended with its process, so that process becomes a suspect. A lost
/// message is repeated in a new generation, which the supervisor requests.
void progress_watch::act_on(const schedule::stall& found) {
  auto cause = found.problem + " (no progress within " + text_of(options_.progress_timeout) +
               ", the limit that --progress-timeout sets)";
  options_.log->error("no progress, {} chain=\"{}\"", cause, found.text);
  switch (found.cause) {
    case schedule::stall_cause::device:
    case schedule::stall_cause::loader:
      return options_.members->suspect(job_.hosts.member_of({found.device}), cause);
    case schedule::stall_cause::lost_tensor:
    case schedule::stall_cause::lost_samples:
    case schedule::stall_cause::missing_credit:
      self_->send(options_.supervisor_of(options_.rank),
                  messages::restart_requested{options_.generation, cause});
      return;
    case schedule::stall_cause::deadlock:
      return ending_.fail(cause + ". The plan is wrong, which is a bug in Troupe");
    case schedule::stall_cause::none:
      return;
  }
}

/// What the job waits for without a time limit; empty while steps are being computed.
std::string progress_watch::wait_without_limit() const {
  switch (job_.now) {
    case job_state::phase::gathering:
      return calls_.entered().entered().empty() ? "" : "ranks that have not entered call " + missing_ranks();
    case job_state::phase::finding:
      return "the disk, to read a snapshot";
    case job_state::phase::restoring:
      return "ranks that have not restored their stages: " + missing_ranks();
    case job_state::phase::running:
      break;
  }
  if (job_.non_finite) return "copies of the last finite state, and the disk, to write it";
  const auto& credits = calls_.credits();
  const auto& activity = credits.activity();
  if (activity.kind == job::call_kind::gather || activity.kind == job::call_kind::memory ||
      (activity.kind == job::call_kind::predict && credits.is_granted_done()))
    return "programs that have not received the tensors of call " + std::to_string(activity.index) +
           ": ranks " + ranks_without_tensors();
  if (!credits.is_granted_done() || activity.kind == job::call_kind::hash) return {};
  if (credits.waits_for_user()) return "the program's callback, which has not handled the finished steps";
  return "copies of step " + std::to_string(credits.granted_end()) + " to be kept in memory and on disk";
}

bool progress_watch::waits_for_copies() const {
  const auto& credits = calls_.credits();
  return job_.now == job_state::phase::running && !job_.non_finite && credits.is_granted_done() &&
         credits.activity().kind == job::call_kind::train && !credits.waits_for_user();
}

std::string progress_watch::ranks_without_tensors() const {
  std::string ranks;
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (calls_.lacks_tensors(rank)) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return ranks;
}

/// Before a call: its number and the ranks that have not entered it. In a restore: the ranks that have not
/// restored.
std::string progress_watch::missing_ranks() const {
  std::string missing;
  const auto& entered = calls_.entered().entered();
  auto call = options_.completed->size();
  bool is_entering = job_.now == job_state::phase::gathering;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    auto found = entered.find(rank);
    bool is_here = is_entering ? found != entered.end() && found->second.index >= call
                               : calls_.restore().has_restored(rank);
    if (!is_here) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  return is_entering ? std::to_string(call) + ": " + missing : missing;
}

void progress_watch::warn_of_wait(const std::string& what, time_point now) {
  if (!waits_since_ || waits_for_ != what) {
    waits_since_ = now;
    waits_for_ = what;
    return;
  }
  if (now - *waits_since_ >= options_.progress_timeout && !job_.known.job && !std::exchange(has_acted_, true))
    return ending_.fail("World::barrier waits for " + what + " (not within " +
                        text_of(options_.progress_timeout) +
                        ", the limit that --progress-timeout sets; 0 is none)");
  if (now - *waits_since_ < options_.progress_timeout / 2 || warned_of_ == what) return;
  warned_of_ = what;
  options_.log->warn("no progress generation={} for={:.1f}s, waiting for {}", options_.generation,
                     std::chrono::duration<double>(now - *waits_since_).count(), what);
}

}  // namespace troupe::actors::scheduler
