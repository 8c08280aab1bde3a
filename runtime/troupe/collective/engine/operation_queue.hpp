#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "troupe/collective/backend.hpp"
#include "troupe/collective/engine/polling.hpp"
#include "troupe/collective/work.hpp"

namespace troupe {

/// The calls of a group that have not ended, in queues whose calls run one after the other: one queue for the
/// collectives, and for each other member one for sends and one for receives.
class call_queues {
 public:
  struct queue {
    std::deque<std::shared_ptr<call>> calls;
    std::uint64_t last_sequence = 0;
    /// Gives the call its sequence number.
    void add(std::shared_ptr<call> next) {
      next->sequence = ++last_sequence;
      calls.push_back(std::move(next));
    }
    call* first() const { return calls.empty() ? nullptr : calls.front().get(); }
  };

  queue& of(const collective_operation& what) {
    std::size_t index = 0;
    if (what.peer >= 0)
      index = 1 + 2 * static_cast<std::size_t>(what.peer) +
              (what.signature.kind == collective_kind::receive ? 1 : 0);
    if (index >= queues_.size()) queues_.resize(index + 1);
    return queues_[index];
  }
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }

 private:
  std::vector<queue> queues_;
};

/// Numbers and runs the calls of one group. Collectives run in order; sends and receives of each peer run in
/// order beside them. One thread at a time polls: it owns the backend and advances all calls. That is a
/// thread that waits for a call, or, for calls with progress_by::background, a thread of the queue's own,
/// which is started by the first such call. The poller spins for some microseconds, then yields if a thread
/// waits for it, then sleeps.
///
/// The first failure fails every call, present and future. Thread-safe.
class operation_queue {
 public:
  struct callbacks {
    /// Makes the error of a call that did not end in time.
    std::function<std::exception_ptr(const call&)> on_timeout;
    /// Makes the error of all calls when this one was cancelled.
    std::function<std::exception_ptr(const call&)> on_cancel;
    /// Makes the error with which calls fail from the first failure, with which the backend is aborted. Null:
    /// the same error.
    std::function<std::exception_ptr(const std::exception_ptr&)> on_failure = nullptr;
    /// A call has begun and did not end in its first round.
    std::function<void(const call&)> on_wait;
    /// A call that had begun has ended, well or not.
    std::function<void(const call&)> on_end;
    /// A thread has waited for a call since `since`, and the call has ended. Called on that thread. Null:
    /// small calls that end soon are not timed.
    std::function<void(const call&, call::clock::time_point since)> on_waited = nullptr;
  };

  operation_queue(collective_backend& backend, callbacks hooks);
  /// Aborts the group if calls are in flight.
  ~operation_queue();
  operation_queue(const operation_queue&) = delete;
  operation_queue& operator=(const operation_queue&) = delete;

  /// Gives the call its sequence number: collectives are counted from 1, and so are the sends and the
  /// receives of each peer.
  void submit(const std::shared_ptr<call>& added);
  /// Returns when the call has finished, well or not.
  void wait(call& wanted);
  /// Every call fails with `error`.
  void abort(const std::exception_ptr& error);
  /// Every call fails because this one is cancelled.
  void cancel(const call& unwanted);
  int num_unfinished() const { return num_unfinished_; }
  /// The error with which every call fails; null while there is none.
  std::exception_ptr failure();

 private:
  bool begin_at_once(const std::shared_ptr<call>& added);
  bool advance_all();
  bool advance(call_queues::queue& of);
  void take_submitted();
  void end(call& last, std::exception_ptr error);
  void fail(const std::exception_ptr& cause);
  void back_off();
  void yield();
  void sleep();
  bool has_waiter() const;
  void check_members_and_timeouts();
  void cancel_sleep();
  void abort_backend(const std::exception_ptr& error);
  template <class MakeError>
  void fail_with(MakeError make_error);
  void wait_for_end(call& wanted);
  bool wait_for_poller(call& wanted, std::unique_lock<std::mutex>& poller);
  void release_polling(std::unique_lock<std::mutex> poller, std::atomic<int>& others);
  bool is_timed(const call& what) const;
  void on_first_wait(call& first);
  template <class Done>
  void poll_until(Done is_done);
  bool poll_in_background();

  collective_backend& backend_;
  callbacks hooks_;

  std::mutex submitting_;  // guards the next two; failure_ is written with polling_ held too
  std::vector<std::shared_ptr<call>> submitted_;
  std::exception_ptr failure_;

  std::mutex polling_;  // guards the next five, and the backend
  call_queues queues_;
  bool is_background_polling_ = false;
  bool is_sleep_announced_ = false;
  backoff backoff_;
  unsigned num_rounds_ = 0;

  std::atomic<bool> has_submitted_ = false;
  std::atomic<bool> is_ending_ = false;
  std::atomic<int> num_unfinished_ = 0;
  std::atomic<int> num_passive_waiters_ = 0;  ///< threads that wait for calls which another thread polls
  std::atomic<bool> abort_requested_ = false;
  std::atomic<bool> is_sleeping_ = false;

  background_progress background_{[this] { return poll_in_background(); }};
};

}  // namespace troupe
