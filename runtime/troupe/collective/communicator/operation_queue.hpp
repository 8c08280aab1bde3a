#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "troupe/collective/calls/backend.hpp"
#include "troupe/collective/calls/work.hpp"

namespace troupe::collective {

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

  queue& queue_for(const collective_operation& what) {
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

/// The calls of one group: numbers them, runs them in order, and ends them. Collectives run one after the
/// other; sends and receives of each peer run in order beside them. The first failure fails every call,
/// present and future. It neither waits nor has a thread: group_progress decides who advances it.
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
    /// After `finished` is set. Null: nobody asks for it.
    std::function<void()> after_end = nullptr;
    /// A thread has waited for a call since `since`, and the call has ended. Called on that thread. Null:
    /// small calls that end soon are not timed.
    std::function<void(const call&, call::clock::time_point since)> on_waited = nullptr;
  };

  /// `backend` outlives it.
  operation_queue(collective_backend& backend, callbacks hooks)
      : backend_(backend), hooks_(std::move(hooks)) {}
  operation_queue(const operation_queue&) = delete;
  operation_queue& operator=(const operation_queue&) = delete;

  const callbacks& hooks() const { return hooks_; }

  // ---- From any thread.

  /// Adds a call, which take_added() gives its sequence number: collectives are counted from 1, and so are
  /// the sends and the receives of each peer. False: the group has failed, and with it the call.
  bool add(const std::shared_ptr<call>& added);
  int num_unfinished() const { return num_unfinished_; }
  /// The same, ordered after what this thread has stored before.
  int num_unfinished_now() { return num_unfinished_.fetch_add(0, std::memory_order_acq_rel); }
  /// The error with which every call fails; null while there is none.
  std::exception_ptr failure();

  // ---- By one thread at a time, which uses the backend too.

  /// Adds a call and begins it. False: calls before it in its order have not ended, or the group has failed.
  bool begin(const std::shared_ptr<call>& added);
  /// One round: advances every call that is first in its order. Returns whether one has ended. Throws what
  /// ends the group: fail() follows.
  bool advance();
  /// Takes the calls whose add() has returned. advance() may see them a round later.
  void take_added();
  /// The call that has run longer than its timeout; null if there is none.
  std::shared_ptr<const call> find_late();
  /// Aborts the backend because of `cause`, and ends every call. Does nothing after the first failure.
  void fail(const std::exception_ptr& cause);

 private:
  bool advance(call_queues::queue& pending);
  void end(call& last, std::exception_ptr error);
  void abort_backend(const std::exception_ptr& error);
  bool is_timed(const call& what) const;
  void on_first_wait(call& first);

  collective_backend& backend_;
  callbacks hooks_;

  std::mutex adding_;  // guards the next two
  std::vector<std::shared_ptr<call>> added_;
  std::exception_ptr failure_;

  call_queues queues_;  // of the thread that advances
  std::atomic<bool> has_added_ = false;
  std::atomic<int> num_unfinished_ = 0;
};

/// Whether a call is small enough to be begun by the thread that submits it.
bool is_brief(const call_signature& signature);

}  // namespace troupe::collective
