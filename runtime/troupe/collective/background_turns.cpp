#include "troupe/collective/background_turns.hpp"

#include "troupe/posix/short_slices.hpp"

namespace troupe {

/// Told not within the lock: the thread wants it next, and would wait for it till the next tick where it
/// wakes on this core.
void background_turns::want() {
  {
    std::lock_guard lock(mutex_);
    if (is_ending_) return;
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    is_wanted_ = true;
  }
  changed_.notify_one();
}

void background_turns::end() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void background_turns::work() {
  ask_for_short_slices();  // it shares a core with the program's computing
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_ending_ || is_wanted_; });
    if (is_ending_) return;
    is_wanted_ = false;
    lock.unlock();
    bool once_more = turn_();
    lock.lock();
    if (once_more) is_wanted_ = true;
  }
}

}  // namespace troupe
