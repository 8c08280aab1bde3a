#pragma once
#include <atomic>
#include <mutex>
#include <thread>

namespace troupe::transport {

/// A mutex for a polling thread that locks it continuously and other threads that lock it occasionally.
/// With std::mutex the poller would get the lock nearly every time. Here other threads announce that they
/// wait, and the poller yields to them.
class polled_mutex {
 public:
  void lock() {
    if (mutex_.try_lock()) return;
    ++waiting_;
    mutex_.lock();
    --waiting_;
  }
  void unlock() { mutex_.unlock(); }
  /// Poller only, before it locks.
  void yield_to_waiters() const {
    while (is_wanted()) std::this_thread::yield();
  }
  /// Poller only, while it holds the mutex: whether another thread waits.
  bool is_wanted() const { return waiting_ > 0; }
  /// Poller only, after yield_to_waiters.
  void lock_as_poller() { mutex_.lock(); }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_ = 0;
};

}  // namespace troupe::transport
