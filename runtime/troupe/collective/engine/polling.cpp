#include "troupe/collective/engine/polling.hpp"

#include "troupe/posix/short_slices.hpp"

namespace troupe {

/// Notifies after unlocking: the thread takes the mutex first, and if it wakes on this core it would wait for
/// it until the next scheduler tick.
void background_progress::request() {
  {
    std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    is_requested_ = true;
  }
  changed_.notify_one();
}

void background_progress::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void background_progress::work() {
  request_short_slices();  // it shares a core with the program's computing
  std::unique_lock lock(mutex_);
  while (true) {
    // Without a limit: its owner wakes it, and ends it before it goes.
    changed_.wait(lock, [&] { return is_stopping_ || is_requested_; });
    if (is_stopping_) return;
    is_requested_ = false;
    lock.unlock();
    bool once_more = round_();
    lock.lock();
    if (once_more) is_requested_ = true;
  }
}

}  // namespace troupe
