#include "troupe/collective/engine/operation_queue.hpp"

#include <sched.h>

#include <algorithm>

#include "troupe/tensor/captured_step.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr int rounds_between_checks = 32;
constexpr auto max_sleep = 50ms;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Whether a call is small enough to be begun by the thread that submits it.
bool is_brief(const call_signature& signature) {
  constexpr std::int64_t max_bytes = 4096;
  return signature.count * static_cast<std::int64_t>(size_bytes(signature.type)) <= max_bytes;
}

}  // namespace

operation_queue::operation_queue(collective_backend& backend, callbacks hooks)
    : backend_(backend), hooks_(std::move(hooks)) {}

operation_queue::~operation_queue() {
  if (num_unfinished_ > 0)
    abort(std::make_exception_ptr(
        collective_error(collective_failure::cancelled, {}, 0, {}, "the group ended with calls in flight")));
  is_ending_ = true;
  backend_.wake();
  background_.stop();
}

void operation_queue::submit(const std::shared_ptr<call>& added) {
  bool may_begin_here = added->options.progress == progress_by::waiter && is_brief(added->what.signature);
  if (may_begin_here && !hooks_.on_waited && begin_at_once(added)) return;
  {
    std::lock_guard lock(submitting_);
    if (failure_) return end(*added, failure_);
    submitted_.push_back(added);
    has_submitted_.store(true, std::memory_order_relaxed);
    ++num_unfinished_;
  }
  if (added->options.progress == progress_by::background) background_.request();
  if (is_sleeping_) backend_.wake();
}

/// Begins the call on this thread, unless another thread polls or earlier calls of its queue have not ended.
/// So it often ends before a thread waits for it.
bool operation_queue::begin_at_once(const std::shared_ptr<call>& added) {
  std::unique_lock poller(polling_, std::try_to_lock);
  if (!poller) return false;
  take_submitted();
  auto& its_queue = queues_.of(added->what);
  if (failure_ || !its_queue.calls.empty()) return false;
  its_queue.add(added);
  ++num_unfinished_;
  try {
    advance(its_queue);
  } catch (...) {
    fail(std::current_exception());
  }
  release_polling(std::move(poller), num_passive_waiters_);
  return true;
}

std::exception_ptr operation_queue::failure() {
  std::lock_guard lock(submitting_);
  return failure_;
}

void operation_queue::wait(call& wanted) {
  refuse_in_capture("wait");
  if (wanted.finished) return;
  if (!hooks_.on_waited) return wait_for_end(wanted);
  auto since = call::clock::now();
  wait_for_end(wanted);
  hooks_.on_waited(wanted, since);
}

void operation_queue::wait_for_end(call& wanted) {
  while (!wanted.finished) {
    std::unique_lock poller(polling_, std::try_to_lock);
    if (!poller && !wait_for_poller(wanted, poller)) continue;
    poll_until([&] { return wanted.finished.load(); });
    release_polling(std::move(poller), num_unfinished_);
  }
}

/// Returns false when the call has ended; or true, with the lock, when this thread has become the poller.
bool operation_queue::wait_for_poller(call& wanted, std::unique_lock<std::mutex>& poller) {
  num_passive_waiters_.fetch_add(1, std::memory_order_acq_rel);
  bool is_poller = poller.try_lock();
  // Without a limit: the polling thread ends every call, at the latest when its timeout has passed.
  if (!is_poller) wanted.finished.wait(false);
  num_passive_waiters_.fetch_sub(1, std::memory_order_acq_rel);
  return is_poller;
}

/// Unlocks, and lets the background thread poll if there are `others` that need it. The others count
/// themselves before they try to lock. Either their increment is seen here; or theirs comes after the
/// fetch_add here, with which it synchronises, and they find the lock free.
void operation_queue::release_polling(std::unique_lock<std::mutex> poller, std::atomic<int>& others) {
  poller.unlock();
  if (others.fetch_add(0, std::memory_order_acq_rel) > 0) background_.request();
}

template <class MakeError>
void operation_queue::fail_with(MakeError make_error) {
  abort_requested_ = true;
  backend_.wake();
  std::lock_guard poller(polling_);
  take_submitted();
  if (!failure_) fail(make_error());
}

void operation_queue::abort(const std::exception_ptr& error) {
  fail_with([&] { return error; });
}

void operation_queue::cancel(const call& unwanted) {
  fail_with([&] { return hooks_.on_cancel(unwanted); });
}

/// Advances calls until `is_done`.
template <class Done>
void operation_queue::poll_until(Done is_done) {
  backoff_.begin();
  while (!is_done() && !abort_requested_) {
    try {
      // Also while some calls make progress: others may have timed out.
      if (++num_rounds_ % rounds_between_checks == 0) check_members_and_timeouts();
      if (advance_all()) {
        backoff_.made_progress();
        continue;
      }
      if (is_done()) break;
      back_off();
    } catch (...) {
      fail(std::current_exception());
    }
  }
  cancel_sleep();
}

bool operation_queue::advance_all() {
  take_submitted();
  bool moved = false;
  backend_.progress();
  for (auto& each : queues_) moved = advance(each) || moved;
  return moved;
}

bool operation_queue::advance(call_queues::queue& of) {
  if (of.calls.empty()) return false;
  auto& first = *of.calls.front();
  if (!first.running) {
    if (is_timed(first)) first.begun = call::clock::now();
    first.running.emplace(backend_.run(first.what, first.sequence));
  }
  if (!first.running->advance()) {
    if (!std::exchange(first.has_waited, true)) on_first_wait(first);
    return false;
  }
  auto done = std::move(of.calls.front());
  of.calls.pop_front();
  --num_unfinished_;
  end(*done, nullptr);
  return true;
}

/// Whether a call's whole duration is measured. Not of small ones: reading the clock is a large part of their
/// cost.
bool operation_queue::is_timed(const call& what) const {
  return hooks_.on_waited || !is_brief(what.what.signature);
}

/// Costs the call nothing, since it waits for other members.
void operation_queue::on_first_wait(call& first) {
  if (!is_timed(first)) first.begun = call::clock::now();
  hooks_.on_wait(first);
}

void operation_queue::take_submitted() {
  // Normally a submission that is missed here is seen in the next round. Before it sleeps, the poller must
  // see every call whose submitter has not seen is_sleeping_, so it takes the lock, which orders the two.
  if (!has_submitted_.load(std::memory_order_relaxed) && !is_sleep_announced_) return;
  std::lock_guard lock(submitting_);
  has_submitted_.store(false, std::memory_order_relaxed);
  for (auto& added : submitted_) {
    auto& queue = queues_.of(added->what);
    queue.add(std::move(added));
  }
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

/// Aborts the backend before the calls end, since callers may use the tensors once their calls have ended.
void operation_queue::fail(const std::exception_ptr& cause) {
  for (auto& each : queues_)  // a call that fails in its first round is recorded too
    if (!each.calls.empty() && !std::exchange(each.calls.front()->has_waited, true))
      on_first_wait(*each.calls.front());
  auto error = hooks_.on_failure ? hooks_.on_failure(cause) : cause;
  {
    std::lock_guard lock(submitting_);
    if (!failure_) failure_ = error;
  }
  abort_backend(cause);
  take_submitted();
  for (auto& each : queues_)
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

void operation_queue::back_off() {
  switch (backoff_.next()) {
    case backoff::action::spin:
      return pause_briefly();
    case backoff::action::yield:
      return has_waiter() ? yield() : sleep();
    case backoff::action::sleep:
      return sleep();
  }
}

void operation_queue::yield() {
  auto since = call::clock::now();
  ::sched_yield();
  backoff_.add_yield(call::clock::now() - since);
}

void operation_queue::sleep() {
  check_members_and_timeouts();
  if (!std::exchange(is_sleep_announced_, true)) {
    is_sleeping_ = true;
    return backend_.announce_sleep();
  }
  if (!abort_requested_) backend_.sleep(max_sleep);
  cancel_sleep();
}

/// Whether a thread waits for a call. If none does, the program computes meanwhile, perhaps on this core.
/// After a yield it would keep the core for a whole time slice; but it is preempted at once by a thread that
/// wakes from sleep.
bool operation_queue::has_waiter() const {
  return !is_background_polling_ || num_passive_waiters_.load(std::memory_order_relaxed) > 0;
}

void operation_queue::cancel_sleep() {
  if (!std::exchange(is_sleep_announced_, false)) return;
  backend_.cancel_sleep();
  is_sleeping_ = false;
}

void operation_queue::check_members_and_timeouts() {
  backend_.check_members();
  auto now = call::clock::now();
  for (const auto& each : queues_) {
    if (each.calls.empty() || !each.calls.front()->has_waited) continue;
    auto& first = *each.calls.front();
    first.is_delayed = true;
    if (now - first.begun > first.options.timeout) std::rethrow_exception(hooks_.on_timeout(first));
  }
}

/// A round of the background thread. Another one is needed for calls submitted since, whose threads may have
/// found this one polling and wait passively.
bool operation_queue::poll_in_background() {
  {
    std::lock_guard poller(polling_);
    is_background_polling_ = true;
    poll_until([this] { return num_unfinished_ == 0 || is_ending_; });
    is_background_polling_ = false;
  }
  return num_unfinished_.fetch_add(0, std::memory_order_acq_rel) > 0;  // as in release_polling
}

}  // namespace troupe
