#include "troupe/collective/operation_queue.hpp"

#include <sched.h>

#include <algorithm>

namespace troupe {
namespace {

using namespace std::chrono_literals;

// A peer that computes at the same pace comes within microseconds; one that was descheduled within a time
// slice, and sooner if it is given this core. So spinning is tried less when it is of no use.
constexpr int most_spinning_rounds = 400;
constexpr int least_spinning_rounds = 2;
constexpr auto yielding_time = 200us;
constexpr int rounds_between_looks = 64;
constexpr auto longest_sleep = 50ms;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::pair<collective_kind, int> lane_of(const collective_operation& what) {
  auto kind = what.signature.kind;
  if (kind == collective_kind::send || kind == collective_kind::receive) return {kind, what.peer};
  return {collective_kind::barrier, -1};
}

}  // namespace

operation_queue::operation_queue(collective_backend& backend, callbacks hooks)
    : backend_(backend), hooks_(std::move(hooks)) {}

operation_queue::~operation_queue() {
  if (num_unfinished_ > 0)
    abort(std::make_exception_ptr(
        collective_error(collective_failure::cancelled, {}, 0, {}, "the group ended with calls in flight")));
  {
    std::lock_guard lock(submitting_);
    ending_ = true;
    worker_wakes_.notify_all();
  }
  backend_.wake();
  if (worker_.joinable()) worker_.join();
}

void operation_queue::submit(const std::shared_ptr<call>& added) {
  added->submitted = call::clock::now();
  {
    std::lock_guard lock(submitting_);
    if (broken_) return end(*added, broken_);
    submitted_.push_back(added);
    ++num_unfinished_;
    if (added->options.progress == progress_by::background) wake_worker();
  }
  if (sleeping_) backend_.wake();
}

std::exception_ptr operation_queue::failure() {
  std::lock_guard lock(submitting_);
  return broken_;
}

void operation_queue::wait(call& wanted) {
  if (wanted.finished) return;
  auto since = call::clock::now();
  wait_for_end(wanted);
  hooks_.on_waited(wanted, since);
}

void operation_queue::wait_for_end(call& wanted) {
  while (!wanted.finished) {
    std::unique_lock driver(driving_, std::try_to_lock);
    if (!driver) {
      wanted.finished.wait(false);
      continue;
    }
    drive_until([&] { return wanted.finished.load(); });
    driver.unlock();
    if (num_unfinished_ > 0) {
      std::lock_guard lock(submitting_);
      wake_worker();
    }
  }
}

void operation_queue::abort(std::exception_ptr error) {
  {
    std::lock_guard lock(submitting_);
    if (broken_) return;
    broken_ = error;
  }
  abort_asked_ = true;
  backend_.wake();
  std::lock_guard driver(driving_);
  take_submitted();
  fail(error);
}

/// Moves calls on until `reached`.
void operation_queue::drive_until(const std::function<bool()>& reached) {
  int idle_rounds = 0;
  auto idle_since = call::clock::now();
  while (!reached() && !abort_asked_) {
    try {
      if (advance_all()) {
        if (idle_rounds > 0) learn(idle_rounds);
        idle_rounds = 0;
        continue;
      }
      if (reached()) break;
      if (++idle_rounds == 1) idle_since = call::clock::now();
      rest(idle_rounds, idle_since);
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
  for (auto& [key, calls] : lanes_) moved = advance(calls) || moved;
  return moved;
}

bool operation_queue::advance(std::deque<std::shared_ptr<call>>& of) {
  if (of.empty()) return false;
  auto first = of.front();
  if (!first->running) begin(*first);
  if (!first->running->advance()) return false;
  of.pop_front();
  --num_unfinished_;
  end(*first, nullptr);
  return true;
}

void operation_queue::take_submitted() {
  std::lock_guard lock(submitting_);
  for (auto& added : submitted_) lanes_[lane_of(added->what)].push_back(std::move(added));
  submitted_.clear();
}

void operation_queue::begin(call& first) {
  first.begun = call::clock::now();
  hooks_.on_begin(first);
  first.running.emplace(backend_.run(first.what, first.sequence));
}

void operation_queue::end(call& last, std::exception_ptr error) {
  last.ended = call::clock::now();
  last.running.reset();
  last.error = std::move(error);
  hooks_.on_end(last);
  last.finished = true;
  last.finished.notify_all();
}

/// The backend first: whoever hears of the failure may use the tensors again.
void operation_queue::fail(std::exception_ptr error) {
  {
    std::lock_guard lock(submitting_);
    if (!broken_) broken_ = error;
  }
  abort_backend(error);
  take_submitted();
  for (auto& [key, calls] : std::exchange(lanes_, {}))
    for (auto& each : calls) end(*each, error);
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

/// From how long a wait took that has ended.
void operation_queue::learn(int idle_rounds) {
  if (idle_rounds < spinning_rounds_)
    spinning_rounds_ = std::min(spinning_rounds_ + 1, most_spinning_rounds);
  else
    spinning_rounds_ = std::max(spinning_rounds_ / 2, least_spinning_rounds);
}

void operation_queue::rest(int idle_rounds, call::clock::time_point idle_since) {
  if (idle_rounds < spinning_rounds_) return pause_briefly();
  bool is_tired = call::clock::now() - idle_since > yielding_time;
  if (!is_tired) {
    ::sched_yield();
    if (idle_rounds % rounds_between_looks != 0) return;
  }
  look_around();
  if (!is_tired) return;
  if (!std::exchange(sleep_announced_, true)) {
    sleeping_ = true;
    return backend_.announce_sleep();
  }
  if (!abort_asked_) backend_.sleep(longest_sleep);
  stay_awake();
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
  for (const auto& [key, calls] : lanes_) {
    if (calls.empty() || !calls.front()->running) continue;
    if (now - calls.front()->begun > calls.front()->options.timeout)
      std::rethrow_exception(hooks_.on_timeout(*calls.front()));
  }
}

void operation_queue::wake_worker() {
  if (!worker_.joinable() && !ending_) worker_ = std::thread([this] { work(); });
  worker_wanted_ = true;
  worker_wakes_.notify_one();
}

/// Nothing left to do for the thread of its own.
bool operation_queue::is_idle() {
  std::lock_guard submitting(submitting_);
  if (ending_) return true;
  for (const auto& [key, calls] : lanes_)
    if (!calls.empty()) return false;
  return submitted_.empty();
}

void operation_queue::work() {
  std::unique_lock lock(submitting_);
  while (true) {
    worker_wakes_.wait(lock, [&] { return ending_ || worker_wanted_; });
    if (ending_) return;
    worker_wanted_ = false;
    lock.unlock();
    {
      std::lock_guard driver(driving_);
      drive_until([this] { return is_idle(); });
    }
    lock.lock();
    // Whoever came to wait after the last look found this thread at work, and relies on it.
    if (num_unfinished_ > 0) worker_wanted_ = true;
  }
}

}  // namespace troupe
