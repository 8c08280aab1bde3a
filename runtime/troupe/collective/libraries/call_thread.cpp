#include "troupe/collective/libraries/call_thread.hpp"

namespace troupe::collective {

call_thread::~call_thread() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

std::shared_ptr<call_thread::blocking_call> call_thread::start(std::function<void()> body,
                                                               std::function<void()> on_end) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !running_; });
  body_ = std::move(body);
  on_end_ = std::move(on_end);
  running_ = std::make_shared<blocking_call>();
  changed_.notify_all();
  return running_;
}

/// Without a limit, as the other waits here: every call of a library ends with its own timeout, which sets
/// running_ back.
void call_thread::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !running_; });
}

void call_thread::work() {
  broken_pipe_guard guard;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || running_; });
    if (!running_) return;
    lock.unlock();
    try {
      body_();
    } catch (...) {
      running_->error = std::current_exception();
    }
    running_->ended = true;
    on_end_();
    lock.lock();
    running_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace troupe::collective
