#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "troupe/collective/calls/backend.hpp"
#include "troupe/collective/calls/work.hpp"
#include "troupe/collective/communicator/operation_queue.hpp"
#include "troupe/collective/engine/backoff.hpp"
#include "troupe/collective/engine/progress_engine.hpp"

namespace troupe::collective {

/// Who advances the calls of one group. One thread at a time polls: it owns the backend and advances all
/// calls. That is a thread that waits for a call; while none does, the engine of the process. A waiting
/// thread spins for some microseconds, then yields, then sleeps. Thread-safe.
class group_progress final : private progress_engine::client {
 public:
  /// `backend` outlives it.
  group_progress(collective_backend& backend, operation_queue::callbacks hooks,
                 std::shared_ptr<progress_engine> engine);
  /// Aborts the group if calls are in flight.
  ~group_progress();
  group_progress(const group_progress&) = delete;
  group_progress& operator=(const group_progress&) = delete;

  /// Gives the call its place in the order of the group.
  void submit(const std::shared_ptr<call>& added);
  /// Returns when the call has finished, well or not.
  void wait(call& wanted);
  /// Every call fails with `error`.
  void abort(const std::exception_ptr& error);
  /// Every call fails because this one is cancelled.
  void cancel(const call& unwanted);
  int num_unfinished() const { return calls_.num_unfinished(); }
  /// The error with which every call fails; null while there is none.
  std::exception_ptr failure() { return calls_.failure(); }

 private:
  // Of the engine.
  bool advance() override;
  bool prepare_sleep(wake_sources& sources) override;
  bool is_idle() override { return calls_.num_unfinished_now() == 0; }
  bool advance_for_engine(bool checks);
  void fail_from_engine(std::function<std::exception_ptr()> make_error);

  bool begin_at_once(const std::shared_ptr<call>& added);
  void wait_for_end(call& wanted);
  void wait_for_poller(call& wanted);
  bool try_to_poll(std::unique_lock<std::mutex>& poller);
  bool poll_for(call& wanted);
  void end_polling(std::unique_lock<std::mutex> poller);
  bool back_off();
  void yield();
  bool sleep();
  void cancel_sleep();
  void check();
  void fail_with(const std::function<std::exception_ptr()>& make_error);

  collective_backend& backend_;
  operation_queue calls_;

  std::mutex polling_;  // guards the next three, the backend, and what calls_ says
  bool is_sleep_announced_ = false;
  backoff backoff_;
  unsigned num_rounds_ = 0;

  /// Threads that found the lock taken and rely on the engine or on who has it: those that wait for calls,
  /// and the engine itself while it sleeps.
  std::atomic<int> num_kept_out_ = 0;
  bool is_engine_kept_out_ = false;  ///< the engine's thread is one of num_kept_out_
  std::atomic<bool> abort_requested_ = false;
  std::atomic<bool> is_sleeping_ = false;  ///< the poller, or the engine for this group
  std::atomic<bool> is_failing_ = false;
  std::thread failing_;  ///< of the engine; see fail_from_engine()

  std::shared_ptr<progress_engine> engine_;
  progress_engine::place place_;  // ends first
};

}  // namespace troupe::collective
