#pragma once
#include <signal.h>

#include <optional>

#include "troupe/config/stop_signals.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// Receives SIGINT, SIGTERM, SIGHUP, SIGCONT, SIGCHLD where this process adopts others, and `more` through a
/// readable descriptor, and ignores SIGPIPE, during its lifetime. Signals that are ignored when it is made
/// stay ignored: SIGHUP under nohup, and SIGINT of what a shell without job control starts in the background.
class signal_guard {
 public:
  explicit signal_guard(const config::stop_signals& more = {});
  signal_guard(const signal_guard&) = delete;
  signal_guard& operator=(const signal_guard&) = delete;
  ~signal_guard();
  int fd() const { return fd_.get(); }
  /// The next signal that has arrived.
  std::optional<int> next();

 private:
  sigset_t before_;
  void (*sigpipe_before_)(int);
  posix::unique_fd fd_;
};

}  // namespace troupe
