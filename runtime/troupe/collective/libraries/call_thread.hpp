#pragma once
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace troupe::collective {

/// Blocks SIGPIPE, which would end the process, in this thread and those that it starts. While it lives, a
/// library that writes to a closed connection gets an error instead. Other threads of the program keep their
/// signals.
class broken_pipe_guard {
 public:
  broken_pipe_guard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &outer_);
  }
  ~broken_pipe_guard() {
    timespec at_once{};
    if (sigismember(&outer_, SIGPIPE) == 0) sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &outer_, nullptr);
  }
  broken_pipe_guard(const broken_pipe_guard&) = delete;
  broken_pipe_guard& operator=(const broken_pipe_guard&) = delete;

 private:
  sigset_t pipe_, outer_;
};

/// A thread for the blocking calls of a library, which runs one after the other. It gets no SIGPIPE.
class call_thread {
 public:
  struct blocking_call {
    std::atomic<bool> ended = false;
    std::exception_ptr error;  ///< may be read once it has ended
  };

  call_thread() : thread_([this] { work(); }) {}
  /// Waits for the running call.
  ~call_thread();
  call_thread(const call_thread&) = delete;
  call_thread& operator=(const call_thread&) = delete;

  /// Runs `body` on the thread, then `on_end`. Waits until the call before has ended.
  std::shared_ptr<blocking_call> start(std::function<void()> body, std::function<void()> on_end);
  /// Returns when no call is running.
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

}  // namespace troupe::collective
