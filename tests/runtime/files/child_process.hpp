#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>

namespace troupe::testing {

/// A fork of this process that runs `body` and ends with 0, or with 1 if it throws.
class child_process {
 public:
  template <class Body>
  explicit child_process(const Body& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    try {
      body();
    } catch (const std::exception&) {
      ::_exit(1);
    }
    ::_exit(0);
  }
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;
  ~child_process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait_status();
  }
  /// What waitpid says of its end.
  int wait_status() {
    int status = -1;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }

 private:
  ::pid_t pid_;
};

/// The signal that ended a child running `body`, or 0 if none did.
template <class Body>
int signal_that_ended(const Body& body) {
  int status = child_process(body).wait_status();
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace troupe::testing
