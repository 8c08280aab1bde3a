#include "troupe/device/outgoing_copies.hpp"

#include <utility>

namespace troupe::actors::devices {

outgoing_copies::outgoing_copies(sender send, failure_callback on_failure)
    : send_(std::move(send)), on_failure_(std::move(on_failure)), thread_([this] { run(); }) {}

outgoing_copies::~outgoing_copies() {
  {
    std::lock_guard lock(mutex_);
    queue_.clear();
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void outgoing_copies::add(int to_rank, const transport::tensor_tag& tag, tensor value) {
  outgoing next{to_rank, tag, async_host_copy(std::move(value))};
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(next));
  }
  changed_.notify_all();
}

void outgoing_copies::clear() {
  std::unique_lock lock(mutex_);
  queue_.clear();
  changed_.wait(lock, [this] { return !is_sending_; });
  has_failed_ = false;
}

void outgoing_copies::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return is_ending_ || (!queue_.empty() && !has_failed_); });
    if (is_ending_) return;
    send_first(lock);
    changed_.notify_all();
  }
}

void outgoing_copies::send_first(std::unique_lock<std::mutex>& lock) {
  auto first = std::move(queue_.front());
  queue_.pop_front();
  is_sending_ = true;
  lock.unlock();
  std::exception_ptr failure;
  try {
    send_(first.to_rank, first.tag, first.value.take());
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  has_failed_ = failure != nullptr;
  if (failure) on_failure_(first.tag, failure);
  is_sending_ = false;
}

}  // namespace troupe::actors::devices
