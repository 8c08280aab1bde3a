#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace troupe::actors::devices {

/// A thread on which copies of what a GPU computes are waited for and handed on, one after the other, while
/// the device goes on.
class copy_thread {
 public:
  using failure_callback = std::function<void(std::uint64_t generation, std::exception_ptr cause)>;
  /// `name`: of the thread, at most 15 characters. Both are called on it: `on_failure` after a failure, when
  /// nothing is copied any more until clear(), `on_idle` when all copies are made.
  copy_thread(
      const char* name, failure_callback on_failure, std::function<void()> on_idle = [] {});
  copy_thread(const copy_thread&) = delete;
  copy_thread& operator=(const copy_thread&) = delete;
  ~copy_thread();

  /// `copy` makes one copy, and is destroyed on the thread when it has run.
  void add(std::uint64_t generation, std::function<void()> copy);
  /// Whether copies are not made yet, and none has failed.
  bool is_busy() const;
  /// Waits while is_busy(), at most so long. False: it is.
  bool wait_for(std::chrono::nanoseconds longest);
  /// Forgets what has not begun, and waits for what has.
  void clear();

 private:
  struct task {
    std::uint64_t generation = 0;
    std::function<void()> copy;
  };
  void run();
  void run_first(std::unique_lock<std::mutex>& lock);
  bool is_idle() const { return !is_copying_ && (queue_.empty() || has_failed_); }

  failure_callback on_failure_;
  std::function<void()> on_idle_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<task> queue_;
  bool is_copying_ = false, has_failed_ = false, is_ending_ = false;
  std::thread thread_;  ///< last, since it uses the others
};

}  // namespace troupe::actors::devices
