#pragma once
#include <csignal>
#include <ctime>

namespace troupe {

/// While it lives, this thread and those that it begins get an error and no SIGPIPE, which would end the
/// process, when a library writes to a connection that the other side has closed. The rest of the program
/// keeps its signals.
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

}  // namespace troupe
