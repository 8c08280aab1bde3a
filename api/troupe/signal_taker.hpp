#pragma once
#include <signal.h>

#include <array>
#include <optional>

#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// Takes SIGINT, SIGTERM and SIGHUP as a readable descriptor as long as it lives; one that the program
/// ignores (nohup) stays ignored. One at a time in a process. Handlers instead of a blocked mask: programs
/// that this one starts would inherit the mask.
class signal_taker {
 public:
  signal_taker();
  signal_taker(const signal_taker&) = delete;
  signal_taker& operator=(const signal_taker&) = delete;
  ~signal_taker();

  int fd() const { return read_.get(); }
  /// The next signal that has arrived.
  std::optional<int> next();

 private:
  static constexpr std::array numbers_{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, 3> before_{};
  unique_fd read_, write_;
};

}  // namespace troupe
