#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "troupe/collective/backend.hpp"
#include "troupe/collective/call.hpp"

namespace troupe {

/// Carries out the calls of one group: collectives in order, sends and receives of each peer in order beside
/// them. Whoever waits for a call moves all of them on; if nobody waits, a thread of its own does, which
/// exists from the first call that asks for it. Waiting spins for some microseconds, then yields, then
/// sleeps.
///
/// The first failure fails every call, present and future. Thread-safe.
class operation_queue {
 public:
  struct callbacks {
    /// Makes the error of a call that did not end in time.
    std::function<std::exception_ptr(const call&)> on_timeout;
    std::function<void(const call&)> on_begin;
    std::function<void(const call&)> on_end;
    /// Somebody waited for a call since then, which has ended now; on the thread that waited.
    std::function<void(const call&, call::clock::time_point since)> on_waited;
  };

  operation_queue(collective_backend& backend, callbacks hooks);
  /// Calls in flight are abandoned: the group is aborted then.
  ~operation_queue();
  operation_queue(const operation_queue&) = delete;
  operation_queue& operator=(const operation_queue&) = delete;

  void submit(const std::shared_ptr<call>& added);
  /// Returns when it has finished, well or not.
  void wait(call& wanted);
  /// Every call fails with `error`.
  void abort(std::exception_ptr error);
  int num_unfinished() const { return num_unfinished_; }
  /// What every call fails with; null while all is well.
  std::exception_ptr failure();

 private:
  using lane = std::pair<collective_kind, int>;  // the kind of collectives is barrier, of no peer

  bool advance_all();
  bool advance(std::deque<std::shared_ptr<call>>& of);
  void take_submitted();
  void begin(call& first);
  void end(call& last, std::exception_ptr error);
  void fail(std::exception_ptr error);
  void learn(int idle_rounds);
  void rest(int idle_rounds, call::clock::time_point idle_since);
  void look_around();
  void stay_awake();
  void abort_backend(const std::exception_ptr& error);
  void wait_for_end(call& wanted);
  void drive_until(const std::function<bool()>& reached);
  bool is_idle();
  void wake_worker();
  void work();

  collective_backend& backend_;
  callbacks hooks_;

  std::mutex submitting_;  // guards the next four
  std::vector<std::shared_ptr<call>> submitted_;
  bool worker_wanted_ = false;
  bool ending_ = false;
  std::condition_variable worker_wakes_;
  std::exception_ptr broken_;

  std::mutex driving_;  // guards the next three, and the backend
  std::map<lane, std::deque<std::shared_ptr<call>>> lanes_;
  bool sleep_announced_ = false;
  int spinning_rounds_ = 400;  ///< of a wait, before it yields

  std::atomic<int> num_unfinished_ = 0;
  std::atomic<bool> abort_asked_ = false;
  std::atomic<bool> sleeping_ = false;

  std::thread worker_;
};

}  // namespace troupe
