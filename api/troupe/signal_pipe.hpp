#pragma once
#include <signal.h>

#include <array>
#include <optional>

#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// Delivers SIGINT, SIGTERM and SIGHUP through a pipe (the self-pipe trick) while it lives; ignored signals
/// (nohup) stay ignored. At most one instance per process. It installs handlers instead of using signalfd,
/// since child processes would inherit the blocked signal mask.
class signal_pipe {
 public:
  signal_pipe();
  signal_pipe(const signal_pipe&) = delete;
  signal_pipe& operator=(const signal_pipe&) = delete;
  ~signal_pipe();

  int fd() const { return read_.get(); }
  /// Reads the next signal that was received, without blocking; none if there is no more.
  std::optional<int> next();

 private:
  static constexpr std::array numbers_{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
  unique_fd read_, write_;
};

}  // namespace troupe
