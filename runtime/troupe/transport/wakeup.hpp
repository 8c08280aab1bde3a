#pragma once
#include <array>
#include <atomic>
#include <chrono>

#include "troupe/posix/wake_event.hpp"

namespace troupe {

/// A wake_event that costs nothing while nobody sleeps: lets one thread sleep on descriptors and others wake
/// it. The sleeper announces itself *before* it checks for work the last time, and wakers come after they
/// made work, so that no wake-up is lost; a waker pays for a system call only if somebody sleeps.
class wakeup {
 public:
  /// A sleeper looks again after this, whoever forgot to wake it: a wake-up that is lost (between network
  /// namespaces, UCX's never come) makes a job slow and does not stop it.
  static constexpr auto longest_sleep = std::chrono::milliseconds(100);

  void announce_sleep() { sleeping_ = true; }
  void cancel_sleep() { sleeping_ = false; }
  /// Until a descriptor (negative ones are skipped) is readable, somebody called wake() since announce_sleep,
  /// or `at_most` passed.
  void sleep(std::array<int, 2> descriptors, std::chrono::milliseconds at_most);
  /// Sleeps if `armed`. If not, there is work already or work that makes no event (a full queue in shared
  /// memory): lets others run, and sleeps in steps if it found nothing to do for long: who should make room
  /// may be dead.
  void rest(std::array<int, 2> descriptors, bool armed, std::chrono::nanoseconds idle,
            std::chrono::milliseconds at_most = longest_sleep);
  void wake();

 private:
  wake_event event_;
  std::atomic<bool> sleeping_ = false;
};

}  // namespace troupe
