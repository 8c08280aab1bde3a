#pragma once
#include "troupe/posix/unique_fd.hpp"

namespace troupe::posix {

/// Wakes a thread that polls fd(): the descriptor is readable from set() until clear(). Thread-safe.
class wake_event {
 public:
  /// Throws system_failure.
  wake_event();

  int fd() const { return fd_.get(); }
  void set() { set(fd()); }
  void clear();
  /// Sets the event of which this process has the descriptor, for example another process's.
  static void set(int fd);

 private:
  unique_fd fd_;
};

}  // namespace troupe::posix
