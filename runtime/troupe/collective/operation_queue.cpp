#include "troupe/collective/operation_queue.hpp"

#include <sched.h>

#include <algorithm>

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr int rounds_between_looks = 32;
constexpr auto longest_sleep = 50ms;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Small enough to be begun by whoever makes it.
bool is_brief(const call_signature& signature) {
  constexpr std::int64_t most_bytes = 4096;
  return signature.count * static_cast<std::int64_t>(size_bytes(signature.type)) <= most_bytes;
}

}  // namespace

operation_queue::operation_queue(collective_backend& backend, callbacks hooks)
    : backend_(backend), hooks_(std::move(hooks)) {}

operation_queue::~operation_queue() {
  if (num_unfinished_ > 0)
    abort(std::make_exception_ptr(
        collective_error(collective_failure::cancelled, {}, 0, {}, "the group ended with calls in flight")));
  ending_ = true;
  backend_.wake();
  worker_.end();
}

void operation_queue::submit(const std::shared_ptr<call>& added) {
  bool is_here = added->options.progress == progress_by::waiter && is_brief(added->what.signature);
  if (is_here && !hooks_.on_waited && begin_at_once(added)) return;
  {
    std::lock_guard lock(submitting_);
    if (broken_) return end(*added, broken_);
    submitted_.push_back(added);
    has_submitted_.store(true, std::memory_order_relaxed);
    ++num_unfinished_;
  }
  if (added->options.progress == progress_by::background) worker_.want();
  if (sleeping_) backend_.wake();
}

/// Unless others are moving calls on, or have yet to come to earlier ones: so this one often ends before
/// anybody waits for it.
bool operation_queue::begin_at_once(const std::shared_ptr<call>& added) {
  std::unique_lock driver(driving_, std::try_to_lock);
  if (!driver) return false;
  take_submitted();
  auto& its_lane = lanes_.of(added->what);
  if (broken_ || !its_lane.calls.empty()) return false;
  its_lane.add(added);
  ++num_unfinished_;
  try {
    advance(its_lane);
  } catch (...) {
    fail(std::current_exception());
  }
  stop_driving(std::move(driver), num_relying_);
  return true;
}

std::exception_ptr operation_queue::failure() {
  std::lock_guard lock(submitting_);
  return broken_;
}

void operation_queue::wait(call& wanted) {
  backend_.refuse_in_recording("wait");
  if (wanted.finished) return;
  if (!hooks_.on_waited) return wait_for_end(wanted);
  auto since = call::clock::now();
  wait_for_end(wanted);
  hooks_.on_waited(wanted, since);
}

void operation_queue::wait_for_end(call& wanted) {
  while (!wanted.finished) {
    std::unique_lock driver(driving_, std::try_to_lock);
    if (!driver && !rely_on_others(wanted, driver)) continue;
    drive_until([&] { return wanted.finished.load(); });
    stop_driving(std::move(driver), num_unfinished_);
  }
}

/// Returns when the call has ended; or true, with the lock, if nobody moves calls on any more.
bool operation_queue::rely_on_others(call& wanted, std::unique_lock<std::mutex>& driver) {
  num_relying_.fetch_add(1, std::memory_order_acq_rel);
  bool is_driver = driver.try_lock();
  if (!is_driver) wanted.finished.wait(false);
  num_relying_.fetch_sub(1, std::memory_order_acq_rel);
  return is_driver;
}

/// Leaves it to the worker to move calls on if there are `others` that need it. They count themselves before
/// they try to get the lock. If the count is read here before theirs, they see that the lock is free, since
/// reading it also changes it: whoever changes it next sees what was done here before.
void operation_queue::stop_driving(std::unique_lock<std::mutex> driver, std::atomic<int>& others) {
  driver.unlock();
  if (others.fetch_add(0, std::memory_order_acq_rel) > 0) worker_.want();
}

template <class MakeError>
void operation_queue::give_up(MakeError make_error) {
  abort_asked_ = true;
  backend_.wake();
  std::lock_guard driver(driving_);
  take_submitted();
  if (!broken_) fail(make_error());
}

void operation_queue::abort(const std::exception_ptr& error) {
  give_up([&] { return error; });
}

void operation_queue::cancel(const call& unwanted) {
  give_up([&] { return hooks_.on_cancel(unwanted); });
}

/// Moves calls on until `reached`.
template <class Reached>
void operation_queue::drive_until(Reached reached) {
  patience_.begin();
  while (!reached() && !abort_asked_) {
    try {
      // Whatever else moves: the time of a call that does not may have passed.
      if (++rounds_ % rounds_between_looks == 0) look_around();
      if (advance_all()) {
        patience_.moved();
        continue;
      }
      if (reached()) break;
      rest();
    } catch (...) {
      fail(std::current_exception());
    }
  }
  stay_awake();
}

bool operation_queue::advance_all() {
  take_submitted();
  bool moved = false;
  backend_.progress();
  for (auto& each : lanes_) moved = advance(each) || moved;
  return moved;
}

bool operation_queue::advance(call_lanes::lane& of) {
  if (of.calls.empty()) return false;
  auto& first = *of.calls.front();
  if (!first.running) {
    if (is_timed(first)) first.begun = call::clock::now();
    first.running.emplace(backend_.run(first.what, first.sequence));
  }
  if (!first.running->advance()) {
    if (!std::exchange(first.has_waited, true)) wait_begins(first);
    return false;
  }
  auto done = std::move(of.calls.front());
  of.calls.pop_front();
  --num_unfinished_;
  end(*done, nullptr);
  return true;
}

/// From its begin to its end, whatever happens: reading the clock is a good part of what a small call takes.
bool operation_queue::is_timed(const call& what) const {
  return hooks_.on_waited || !is_brief(what.what.signature);
}

/// What is done here takes no time of the call's, which waits for others.
void operation_queue::wait_begins(call& first) {
  if (!is_timed(first)) first.begun = call::clock::now();
  hooks_.on_wait(first);
}

void operation_queue::take_submitted() {
  // Before it sleeps a driver must see what was submitted by those who did not see it announce that, and be
  // seen by all others: the lock orders them. Otherwise the next round sees what this one does not.
  if (!has_submitted_.load(std::memory_order_relaxed) && !sleep_announced_) return;
  std::lock_guard lock(submitting_);
  has_submitted_.store(false, std::memory_order_relaxed);
  for (auto& added : submitted_) lanes_.of(added->what).add(std::move(added));
  submitted_.clear();
}

void operation_queue::end(call& last, std::exception_ptr error) {
  last.ended = is_timed(last) || last.is_delayed ? call::clock::now() : last.begun;
  bool had_begun = last.running.has_value();
  last.running.reset();
  last.error = std::move(error);
  if (had_begun) hooks_.on_end(last);
  last.finished = true;
  last.finished.notify_all();
}

/// The backend first: whoever hears of the failure may use the tensors again.
void operation_queue::fail(const std::exception_ptr& cause) {
  for (auto& each : lanes_)  // a call that fails at its first look is one of the last calls too
    if (!each.calls.empty() && !std::exchange(each.calls.front()->has_waited, true))
      wait_begins(*each.calls.front());
  auto error = hooks_.on_failure ? hooks_.on_failure(cause) : cause;
  {
    std::lock_guard lock(submitting_);
    if (!broken_) broken_ = error;
  }
  abort_backend(cause);
  take_submitted();
  for (auto& each : lanes_)
    for (auto& unfinished : std::exchange(each.calls, {})) end(*unfinished, error);
  num_unfinished_ = 0;
}

void operation_queue::abort_backend(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const collective_error& failure) {
    backend_.abort(failure);
  } catch (const std::exception& failure) {
    backend_.abort(collective_error(collective_failure::transport, {}, 0, {}, failure.what()));
  }
}

void operation_queue::rest() {
  switch (patience_.next()) {
    case patience::step::spin:
      return pause_briefly();
    case patience::step::yield:
      return is_awaited() ? yield() : sleep();
    case patience::step::sleep:
      return sleep();
  }
}

void operation_queue::yield() {
  auto since = call::clock::now();
  ::sched_yield();
  patience_.yielded(call::clock::now() - since);
}

void operation_queue::sleep() {
  look_around();
  if (!std::exchange(sleep_announced_, true)) {
    sleeping_ = true;
    return backend_.announce_sleep();
  }
  if (!abort_asked_) backend_.sleep(longest_sleep);
  stay_awake();
}

/// Otherwise the program computes meanwhile. It may do so on this core, and would keep it for a whole slice
/// if it were given it by a yield, but leaves it at once to a thread that wakes.
bool operation_queue::is_awaited() const {
  return !is_worker_driving_ || num_relying_.load(std::memory_order_relaxed) > 0;
}

void operation_queue::stay_awake() {
  if (!std::exchange(sleep_announced_, false)) return;
  backend_.cancel_sleep();
  sleeping_ = false;
}

/// Whether members are alive and calls in time.
void operation_queue::look_around() {
  backend_.check_members();
  auto now = call::clock::now();
  for (const auto& each : lanes_) {
    if (each.calls.empty() || !each.calls.front()->has_waited) continue;
    auto& first = *each.calls.front();
    first.is_delayed = true;
    if (now - first.begun > first.options.timeout) std::rethrow_exception(hooks_.on_timeout(first));
  }
}

/// Whoever came to wait after the last look found this thread at work, and relies on it.
bool operation_queue::drive_in_background() {
  {
    std::lock_guard driver(driving_);
    is_worker_driving_ = true;
    drive_until([this] { return num_unfinished_ == 0 || ending_; });
    is_worker_driving_ = false;
  }
  return num_unfinished_.fetch_add(0, std::memory_order_acq_rel) > 0;  // as in stop_driving
}

}  // namespace troupe
