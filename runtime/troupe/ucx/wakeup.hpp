#pragma once
#include <array>
#include <atomic>
#include <chrono>

#include "troupe/posix/wake_event.hpp"

namespace troupe::ucx {

/// Lets one thread sleep on descriptors and others wake it; wake() makes a system call only if that thread
/// sleeps. The sleeper calls announce_sleep() *before* its last check for work, and wakers call wake() after
/// they have added work, so that no wake-up is lost.
class wakeup {
 public:
  /// A sleeper checks for work at least this often: a lost wake-up (UCX's do not cross network namespaces)
  /// then slows a job down and does not stop it.
  static constexpr auto max_sleep = std::chrono::milliseconds(100);

  void announce_sleep() { sleeping_ = true; }
  void cancel_sleep() { sleeping_ = false; }
  /// Sleeps until a descriptor is readable (negative ones are skipped), wake() was called since
  /// announce_sleep(), or `at_most` has passed.
  void sleep(std::array<int, 2> descriptors, std::chrono::milliseconds at_most);
  /// If `armed`: sleep(). If not, there is work already, or work that makes no event (a full queue in shared
  /// memory). Then it yields the core, and sleeps for short times once `idle`, the time without work, is
  /// long, since the peer that should empty the queue may be dead.
  void rest(std::array<int, 2> descriptors, bool armed, std::chrono::nanoseconds idle,
            std::chrono::milliseconds at_most = max_sleep);
  void wake();

 private:
  posix::wake_event event_;
  std::atomic<bool> sleeping_ = false;
};

}  // namespace troupe::ucx
