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
    if (mutex_.try_lock()) return;
    ++waiting_;
    mutex_.lock();
    --waiting_;
  }
  void unlock() { mutex_.unlock(); }
  /// For the poller, before it locks.
  void let_others_pass() const {
    while (is_wanted()) std::this_thread::yield();
  }
  /// For the poller that holds it: whether somebody waits for it.
  bool is_wanted() const { return waiting_ > 0; }
  /// By the poller, after let_others_pass.
  void lock_as_poller() { mutex_.lock(); }

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_ = 0;
};

}  // namespace troupe
