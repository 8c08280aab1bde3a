#include "troupe/collective/communicator/group_progress.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "troupe/tensor/captured_step.hpp"
#include "troupe/trace/recording.hpp"

namespace troupe::collective {
namespace {

using namespace std::chrono_literals;

constexpr int rounds_between_checks = 32;
constexpr auto max_sleep = 50ms;
/// How often a thread tries to take over from the engine, whose round may be over soon.
constexpr int most_tries = 100;

/// What is made, or thrown meanwhile.
std::exception_ptr error_of(const std::function<std::exception_ptr()>& make) {
  try {
    return make();
  } catch (...) {
    return std::current_exception();
  }
}

/// Records how long this thread waits for a call, but for a small one, which is likely to end at once.
class recorded_wait {
 public:
  explicit recorded_wait(const call& wanted)
      : wanted_(wanted), begin_ns_(is_brief(wanted.what.signature) ? 0 : trace::now_ns()) {
    if (begin_ns_ > 0)
      trace::emit({.begin_ns = begin_ns_,
                   .end_ns = begin_ns_,
                   .kind = trace::trace_kind::wait_begun,
                   .detail = static_cast<std::uint8_t>(trace::wait_reason::collective)});
  }
  ~recorded_wait() {
    if (begin_ns_ > 0)
      trace::emit({.begin_ns = begin_ns_,
                   .end_ns = trace::now_ns(),
                   .step = wanted_.sequence,
                   .kind = trace::trace_kind::wait,
                   .detail = static_cast<std::uint8_t>(trace::wait_reason::collective)});
  }
  recorded_wait(const recorded_wait&) = delete;
  recorded_wait& operator=(const recorded_wait&) = delete;

 private:
  const call& wanted_;
  std::int64_t begin_ns_;
};

}  // namespace

group_progress::group_progress(collective_backend& backend, operation_queue::callbacks hooks,
                               std::shared_ptr<progress_engine> engine)
    : backend_(backend),
      calls_(backend, std::move(hooks)),
      engine_(std::move(engine)),
      place_(*engine_, *this) {}

group_progress::~group_progress() {
  if (num_unfinished() > 0)
    abort(std::make_exception_ptr(
        collective_error(collective_failure::cancelled, {}, 0, {}, "the group ended with calls in flight")));
  if (failing_.joinable()) failing_.join();
}

void group_progress::submit(const std::shared_ptr<call>& added) {
  bool may_begin_here = added->options.progress == progress_by::waiter && is_brief(added->what.signature);
  if (may_begin_here && !calls_.hooks().on_waited && begin_at_once(added)) return;
  if (!calls_.add(added)) return;
  if (added->options.progress == progress_by::background) place_.request();
  if (is_sleeping_) backend_.wake();
}

/// Begins the call on this thread, unless another thread polls or earlier calls of its queue have not ended.
/// So it often ends before a thread waits for it.
bool group_progress::begin_at_once(const std::shared_ptr<call>& added) {
  std::unique_lock poller(polling_, std::try_to_lock);
  if (!poller) return false;
  bool has_begun = calls_.begin(added);
  poller.unlock();
  // As in end_polling(), for those that came meanwhile.
  if (num_kept_out_.fetch_add(0, std::memory_order_acq_rel) > 0) place_.request();
  return has_begun;
}

void group_progress::wait(call& wanted) {
  refuse_in_capture("wait");
  if (wanted.finished) return;
  recorded_wait recorded(wanted);
  const auto& on_waited = calls_.hooks().on_waited;
  if (!on_waited) return wait_for_end(wanted);
  auto since = call::clock::now();
  wait_for_end(wanted);
  on_waited(wanted, since);
}

void group_progress::wait_for_end(call& wanted) {
  while (!wanted.finished) {
    std::unique_lock<std::mutex> poller(polling_, std::defer_lock);
    if (!try_to_poll(poller)) {
      wait_for_poller(wanted);
      continue;
    }
    bool is_left_to_engine = !poll_for(wanted);
    end_polling(std::move(poller));
    // Without a limit: the engine ends every call, at the latest when its timeout has passed.
    if (is_left_to_engine) wanted.finished.wait(false);
  }
}

bool group_progress::try_to_poll(std::unique_lock<std::mutex>& poller) {
  for (int i = 0; i < most_tries; ++i) {
    if (poller.try_lock()) return true;
    pause_briefly();
  }
  return false;
}

/// Returns when the call has ended, or the lock was free.
void group_progress::wait_for_poller(call& wanted) {
  num_kept_out_.fetch_add(1, std::memory_order_acq_rel);
  bool is_free = polling_.try_lock();
  if (is_free) polling_.unlock();
  // Without a limit, see above.
  if (!is_free) wanted.finished.wait(false);
  bool kept_others_out = num_kept_out_.fetch_sub(1, std::memory_order_acq_rel) > 1 && is_free;
  if (kept_others_out) place_.request();
}

/// Unlocks, and lets the engine poll if calls are left. Threads count their calls and themselves before they
/// try to lock. Either their increment is seen here; or theirs comes after the read-modify-write here, with
/// which it synchronises, and they find the lock free.
void group_progress::end_polling(std::unique_lock<std::mutex> poller) {
  cancel_sleep();
  poller.unlock();
  if (calls_.num_unfinished_now() > 0) place_.request();
}

void group_progress::fail_with(const std::function<std::exception_ptr()>& make_error) {
  abort_requested_ = true;
  backend_.wake();
  std::lock_guard poller(polling_);
  calls_.take_added();  // errors name calls by their numbers
  calls_.fail(make_error());
  cancel_sleep();
}

void group_progress::abort(const std::exception_ptr& error) {
  fail_with([&] { return error; });
}

void group_progress::cancel(const call& unwanted) {
  fail_with([&] { return calls_.hooks().on_cancel(unwanted); });
}

/// Advances calls until `wanted` has ended. False: the engine has to.
bool group_progress::poll_for(call& wanted) {
  cancel_sleep();  // the engine's
  backoff_.begin();
  while (!wanted.finished && !abort_requested_) {
    try {
      // Also while some calls make progress: others may have timed out.
      if (++num_rounds_ % rounds_between_checks == 0) check();
      if (calls_.advance()) {
        backoff_.made_progress();
        continue;
      }
      if (wanted.finished) break;
      if (!back_off()) return false;
    } catch (...) {
      calls_.fail(std::current_exception());
    }
  }
  return true;
}

bool group_progress::back_off() {
  switch (backoff_.next()) {
    case backoff::action::spin:
      pause_briefly();
      return true;
    case backoff::action::yield:
      yield();
      return true;
    case backoff::action::sleep:
      break;
  }
  return sleep();
}

void group_progress::yield() {
  auto since = call::clock::now();
  ::sched_yield();
  backoff_.add_yield(call::clock::now() - since);
}

/// The first call announces a sleep, after which calls are advanced once more, and the next one sleeps.
/// False: only the engine can sleep for this backend.
bool group_progress::sleep() {
  if (!backend_.has_own_sleep()) return false;
  check();
  if (!std::exchange(is_sleep_announced_, true)) {
    is_sleeping_ = true;
    backend_.announce_sleep(no_event);
    calls_.take_added();
    return true;
  }
  if (!abort_requested_) backend_.sleep(max_sleep);
  cancel_sleep();
  return true;
}

void group_progress::cancel_sleep() {
  if (!std::exchange(is_sleep_announced_, false)) return;
  backend_.cancel_sleep();
  is_sleeping_ = false;
}

void group_progress::check() {
  backend_.check_members();
  if (auto late = calls_.find_late()) std::rethrow_exception(calls_.hooks().on_timeout(*late));
}

bool group_progress::advance() {
  if (std::exchange(is_engine_kept_out_, false)) num_kept_out_.fetch_sub(1, std::memory_order_acq_rel);
  std::unique_lock poller(polling_, std::try_to_lock);
  if (!poller || is_failing_) return false;
  bool moved = calls_.num_unfinished() > 0 && advance_for_engine(++num_rounds_ % rounds_between_checks == 0);
  if (moved || calls_.num_unfinished() == 0) cancel_sleep();
  return moved;
}

/// A round with the lock.
bool group_progress::advance_for_engine(bool checks) {
  try {
    if (checks) {
      backend_.check_members();
      if (auto late = calls_.find_late()) {
        fail_from_engine([this, late] { return calls_.hooks().on_timeout(*late); });
        return true;
      }
    }
    return calls_.advance();
  } catch (...) {
    fail_from_engine([error = std::current_exception()] { return error; });
    return true;
  }
}

/// If another thread has the lock, or fails the group, it requests the engine when it ends. The engine counts
/// itself before it tries to lock again, since that thread may have seen no one just before it unlocked.
bool group_progress::prepare_sleep(wake_sources& sources) {
  std::unique_lock poller(polling_, std::try_to_lock);
  if (!poller && !std::exchange(is_engine_kept_out_, true))
    num_kept_out_.fetch_add(1, std::memory_order_acq_rel);
  if ((!poller && !poller.try_lock()) || is_failing_) return true;
  if (!std::exchange(is_sleep_announced_, true)) {
    is_sleeping_ = true;
    backend_.announce_sleep(engine_->event());
  }
  calls_.take_added();
  if (calls_.num_unfinished() == 0 || advance_for_engine(true)) return false;
  sources.at_most = std::min<std::chrono::microseconds>(sources.at_most, max_sleep);
  return backend_.add_wake_sources(sources);
}

/// Fails the group, with the lock. Where this may block, on a thread of its own, since the engine serves
/// other groups too.
void group_progress::fail_from_engine(std::function<std::exception_ptr()> make_error) {
  if (backend_.aborts_at_once()) {
    calls_.fail(error_of(make_error));
    return;
  }
  is_failing_ = true;
  if (failing_.joinable()) failing_.join();  // it has ended: is_failing_ was false
  failing_ = std::thread([this, make = std::move(make_error)] {
    fail_with([&] { return error_of(make); });
    is_failing_ = false;
    place_.request();
  });
}

}  // namespace troupe::collective

namespace troupe {

void work::wait() {
  if (!call_) return;
  group_->wait(*call_);
  if (call_->error) std::rethrow_exception(call_->error);
}

void work::cancel() {
  if (is_done()) return;
  group_->cancel(*call_);
}

}  // namespace troupe
