#pragma once
#include <signal.h>

#include <map>
#include <optional>

#include "troupe/config/stop_signals.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::signals {

/// Delivers SIGINT, SIGTERM, SIGHUP and `more` through a pipe (the self-pipe trick) while it lives; ignored
/// signals (nohup) stay ignored. At most one instance per process. It installs handlers instead of using
/// signalfd, since child processes would inherit the blocked signal mask.
class signal_pipe {
 public:
  explicit signal_pipe(const config::stop_signals& more = {});
  signal_pipe(const signal_pipe&) = delete;
  signal_pipe& operator=(const signal_pipe&) = delete;
  ~signal_pipe();

  int fd() const { return read_.get(); }
  /// Reads the next signal that was received, without blocking; none if there is no more.
  std::optional<int> next();

 private:
  std::map<int, struct sigaction> before_;  ///< what each signal did before; key: the signal
  posix::unique_fd read_, write_;
};

}  // namespace troupe::signals
