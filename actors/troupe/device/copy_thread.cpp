#include "troupe/device/copy_thread.hpp"

#include <pthread.h>

#include <utility>

namespace troupe::actors::devices {

copy_thread::copy_thread(const char* name, failure_callback on_failure, std::function<void()> on_idle)
    : on_failure_(std::move(on_failure)), on_idle_(std::move(on_idle)), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), name);
}

copy_thread::~copy_thread() {
  {
    std::lock_guard lock(mutex_);
    queue_.clear();
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void copy_thread::add(std::uint64_t generation, std::function<void()> copy) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({generation, std::move(copy)});
  }
  changed_.notify_all();
}

bool copy_thread::is_busy() const {
  std::lock_guard lock(mutex_);
  return !is_idle();
}

bool copy_thread::wait_for(std::chrono::nanoseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return is_idle(); });
}

void copy_thread::clear() {
  std::unique_lock lock(mutex_);
  queue_.clear();
  changed_.wait(lock, [this] { return !is_copying_; });
  has_failed_ = false;
}

void copy_thread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || (!queue_.empty() && !has_failed_); });
    if (is_ending_) return;
    run_first(lock);
    changed_.notify_all();
    if (!is_idle()) continue;
    lock.unlock();
    on_idle_();
    lock.lock();
  }
}

void copy_thread::run_first(std::unique_lock<std::mutex>& lock) {
  auto first = std::move(queue_.front());
  queue_.pop_front();
  is_copying_ = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    std::exchange(first.copy, nullptr)();
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  has_failed_ = failure != nullptr;
  if (failure) on_failure_(first.generation, failure);
  is_copying_ = false;
}

}  // namespace troupe::actors::devices
