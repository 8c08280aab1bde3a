#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace troupe {

/// A thread that waits in a library's blocking calls so that others need not, one call after the other. It
/// gets no SIGPIPE.
class call_thread {
 public:
  struct blocking_call {
    std::atomic<bool> ended = false;
    std::exception_ptr error;  ///< to be read once it has ended
  };

  call_thread() : thread_([this] { work(); }) {}
  /// Waits for the call that runs.
  ~call_thread();
  call_thread(const call_thread&) = delete;
  call_thread& operator=(const call_thread&) = delete;

  /// `body` runs on the thread, then `on_end`. The one before has ended.
  std::shared_ptr<blocking_call> start(std::function<void()> body, std::function<void()> on_end);
  /// Returns when nothing runs.
  void wait_until_idle();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> body_, on_end_;
  std::shared_ptr<blocking_call> running_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace troupe
