#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "troupe/collective/backend.hpp"
#include "troupe/collective/background_turns.hpp"
#include "troupe/collective/call_lanes.hpp"
#include "troupe/collective/patience.hpp"

namespace troupe {

/// Numbers and carries out the calls of one group: collectives in order, sends and receives of each peer in
/// order beside them. Whoever waits for a call moves all of them on; if nobody waits, a thread of its own
/// does, which exists from the first call that asks for it. Waiting spins for some microseconds, then yields
/// if somebody waits, then sleeps.
///
/// The first failure fails every call, present and future. Thread-safe.
class operation_queue {
 public:
  struct callbacks {
    /// Makes the error of a call that did not end in time.
    std::function<std::exception_ptr(const call&)> on_timeout;
    /// Makes the error of all calls when somebody gave this one up.
    std::function<std::exception_ptr(const call&)> on_cancel;
    /// Makes what calls fail with from what made the first of them fail; the backend hears the latter. If
    /// null, they are the same.
    std::function<std::exception_ptr(const std::exception_ptr&)> on_failure = nullptr;
    /// It began, and did not end at once.
    std::function<void(const call&)> on_wait;
    /// It began, and ended well or not.
    std::function<void(const call&)> on_end;
    /// Somebody waited for a call since then, which has ended now; on the thread that waited. If null, small
    /// calls that end soon are not timed.
    std::function<void(const call&, call::clock::time_point since)> on_waited = nullptr;
  };

  operation_queue(collective_backend& backend, callbacks hooks);
  /// Calls in flight are abandoned: the group is aborted then.
  ~operation_queue();
  operation_queue(const operation_queue&) = delete;
  operation_queue& operator=(const operation_queue&) = delete;

  /// Gives the call its number: collectives are counted from 1, and so are sends and receives of each peer.
  void submit(const std::shared_ptr<call>& added);
  /// Returns when it has finished, well or not.
  void wait(call& wanted);
  /// Every call fails with `error`.
  void abort(const std::exception_ptr& error);
  /// Every call fails because this one is not to go on.
  void cancel(const call& unwanted);
  int num_unfinished() const { return num_unfinished_; }
  /// What every call fails with; null while all is well.
  std::exception_ptr failure();

 private:
  bool begin_at_once(const std::shared_ptr<call>& added);
  bool advance_all();
  bool advance(call_lanes::lane& of);
  void take_submitted();
  void end(call& last, std::exception_ptr error);
  void fail(const std::exception_ptr& cause);
  void rest();
  void yield();
  void sleep();
  bool is_awaited() const;
  void look_around();
  void stay_awake();
  void abort_backend(const std::exception_ptr& error);
  template <class MakeError>
  void give_up(MakeError make_error);
  void wait_for_end(call& wanted);
  bool rely_on_others(call& wanted, std::unique_lock<std::mutex>& driver);
  void stop_driving(std::unique_lock<std::mutex> driver, std::atomic<int>& others);
  bool is_timed(const call& what) const;
  void wait_begins(call& first);
  template <class Reached>
  void drive_until(Reached reached);
  bool drive_in_background();

  collective_backend& backend_;
  callbacks hooks_;

  std::mutex submitting_;  // guards the next two; broken_ changes while driving_ is held too
  std::vector<std::shared_ptr<call>> submitted_;
  std::exception_ptr broken_;

  std::mutex driving_;  // guards the next five, and the backend
  call_lanes lanes_;
  bool is_worker_driving_ = false;
  bool sleep_announced_ = false;
  patience patience_;
  unsigned rounds_ = 0;

  std::atomic<bool> has_submitted_ = false;
  std::atomic<bool> ending_ = false;
  std::atomic<int> num_unfinished_ = 0;
  std::atomic<int> num_relying_ = 0;  ///< who wait for calls that others move on
  std::atomic<bool> abort_asked_ = false;
  std::atomic<bool> sleeping_ = false;

  background_turns worker_{[this] { return drive_in_background(); }};
};

}  // namespace troupe
