#include "troupe/scheduler/step_credits.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace troupe::actors::scheduler {
namespace {

/// Bound of uncommitted copies in memory, in windows of steps: above it no steps are granted. Each copy is a
/// whole state, in the own memory and in flight to the peer.
constexpr std::uint64_t max_uncommitted_windows = 2;
/// Bound of progress events queued for the user's thread: above it no steps are granted.
constexpr std::size_t max_untaken_events = 4096;
constexpr auto look_for_user_every = std::chrono::milliseconds(20);

std::uint64_t first_step(const cut& positions) { return std::ranges::min(positions.devices).step; }

}  // namespace

void step_credits::begin(const job::call_request& activity, std::uint64_t first, cut to, last_copy copied) {
  activity_ = activity;
  granted_end_ = copies_planned_ = first;
  within_.clear();
  tracker_ = step_tracker(static_cast<std::uint32_t>(job_.devices.size()), first);
  go_on(std::move(to), copied);
}

void step_credits::go_on(cut to, last_copy copied) {
  auto last = std::ranges::max(to.devices);
  end_ = last.step + (last.action > 0 ? 1 : 0);
  to_ = std::move(to);
  copied_ = copied;
}

void step_credits::extend() {
  if (job_.non_finite || to_.devices.empty()) return;
  grant_steps();
  grant_within_step();
}

void step_credits::on_retry() {
  retry_credit_pending_ = false;
  if (job_.is_running()) extend();
}

/// A copy that was not requested with the step's credit cannot be requested any more.
void step_credits::shorten() {
  auto end = std::min(end_, copies_planned_ + 1);
  go_on(step_cut(job_.job().training, end), copies_planned_ < end ? last_copy::always : copied_);
  extend();
}

void step_credits::grant_steps() {
  auto limit = first_step(this->limit());
  auto complete = tracker_.complete();
  auto until = std::min(limit, complete + window());
  bool first_credit = granted_end_ == complete;
  // Grant half a window at once, to send fewer messages.
  if (until <= granted_end_ || (!first_credit && until != limit && until - granted_end_ < window() / 2))
    return;
  if (!has_room()) return;
  until = limit_by_disk(until);
  if (until <= granted_end_) return;
  messages::step_credit given{options_.generation,      activity_, complete, until, plan_copies(until),
                              commits_.committed_step()};
  granted_end_ = until;
  for (const auto& device : job_.devices) self_->send(device, given);
}

/// Grants what the activity, or a paused job, may still do beyond whole steps.
void step_credits::grant_within_step() {
  auto wanted = limit().devices;
  if (granted_end_ < std::ranges::min(wanted).step || wanted == granted().devices || !has_room()) return;
  auto last = std::ranges::max(wanted).step;
  if (last > copies_planned_ && limit_by_disk(last) < last) return;
  messages::step_credit given{options_.generation,      activity_, tracker_.complete(), 0, plan_copies(last),
                              commits_.committed_step()};
  for (std::size_t device = 0; device < wanted.size(); ++device) {
    given.end_step = wanted[device].step;
    given.end_action = wanted[device].action;
    self_->send(job_.devices[device], given);
  }
  within_ = std::move(wanted);
}

/// At least two steps: one in progress and one for devices that have finished it.
std::uint64_t step_credits::window() const {
  auto step_time = commits_.step_time();
  auto least = std::min<std::uint64_t>(2, options_.window);
  if (step_time * static_cast<double>(options_.window) <= options_.window_time) return options_.window;
  return std::max(least, static_cast<std::uint64_t>(options_.window_time / step_time));
}

/// Whether the copies of earlier steps are safe and the user's thread has heard of enough of them.
bool step_credits::has_room() {
  return commits_.num_uncommitted() < max_uncommitted_windows * options_.window && !is_user_behind();
}

/// The user's thread gets an event per step and may be slow; its queue is bounded by holding up credits.
bool step_credits::is_user_behind() {
  bool must_wait = options_.client->size() >= max_untaken_events;
  if (must_wait && !waits_for_user_)
    options_.log->warn("the program's callback has not handled {} finished steps; training waits for it",
                       max_untaken_events);
  waits_for_user_ = must_wait;
  if (must_wait && !std::exchange(retry_credit_pending_, true))
    self_->delayed_send(self_, look_for_user_every, messages::retry_credit{});
  return must_wait;
}

/// The copies due up to this step that were not planned yet.
std::vector<messages::due_copy> step_credits::plan_copies(std::uint64_t until) {
  if (until <= copies_planned_) return {};
  auto first = std::exchange(copies_planned_, until) + 1;
  if (activity_.kind != job::call_kind::train) return {};
  return commits_.plan(first, until, tracker_.complete(), copied_end());
}

std::uint64_t step_credits::limit_by_disk(std::uint64_t until) {
  return activity_.kind == job::call_kind::train ? commits_.limit_by_disk(granted_end_, until, copied_end())
                                                 : until;
}

/// The step after which the state is copied in any case.
std::uint64_t step_credits::copied_end() const {
  return copied_ == last_copy::always ? end_ : std::numeric_limits<std::uint64_t>::max();
}

cut step_credits::granted() const {
  cut granted;
  for (std::size_t device = 0; device < job_.devices.size(); ++device)
    granted.devices.push_back(
        std::max(plan_position{granted_end_, 0}, within_.empty() ? plan_position{} : within_[device]));
  return granted;
}

/// Up to where devices may be granted: to the end, or where a paused job stops. A job that is to end goes on
/// to its end.
cut step_credits::limit() const {
  auto limit = to_;
  const auto* stop = job_.is_stopping ? nullptr : pause_.limit();
  for (std::size_t device = 0; stop && device < limit.devices.size(); ++device)
    limit.devices[device] = std::min(limit.devices[device], stop->devices[device]);
  return limit;
}

}  // namespace troupe::actors::scheduler
