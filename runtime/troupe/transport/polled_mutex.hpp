#pragma once
#include <atomic>
#include <mutex>
#include <thread>

namespace troupe {

/// A mutex that a polling thread takes again and again, without keeping others from it: they announce
/// themselves, and the poller lets them pass (std::mutex would let the poller win every time).
class polled_mutex {
 public:
  void lock() {
    ++waiting_;
    mutex_.lock();
    --waiting_;
  }
  void unlock() { mutex_.unlock(); }
  /// For the poller, before it locks.
  void let_others_pass() const {
    while (waiting_ > 0) std::this_thread::yield();
  }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_ = 0;
};

}  // namespace troupe
