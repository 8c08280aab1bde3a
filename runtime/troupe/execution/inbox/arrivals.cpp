#include "troupe/execution/inbox/arrivals.hpp"

namespace troupe::execution {

void arrivals::put(const transport::tensor_tag& tag, tensor value) {
  {
    std::lock_guard lock(mutex_);
    held_.emplace_back(tag, std::move(value));
    ++num_put_;
  }
  wake();
}

void arrivals::note() {
  {
    std::lock_guard lock(mutex_);
    ++num_put_;
  }
  wake();
}

void arrivals::wake() {
  changed_.notify_one();
  if (on_put_) on_put_();
}

bool arrivals::move_to(inbox& into) {
  is_notified_ = false;  // first: who puts something after the look below tells of it
  if (num_seen_ == num_put_) return false;
  std::vector<std::pair<transport::tensor_tag, tensor>> moved;
  {
    std::lock_guard lock(mutex_);
    moved.swap(held_);
    num_seen_ = num_put_.load();
  }
  for (auto& [tag, value] : moved) into.put(tag, std::move(value));
  return true;
}

std::size_t arrivals::num_held() const {
  std::lock_guard lock(mutex_);
  return held_.size();
}

void arrivals::wait_for_more(std::uint64_t seen, std::chrono::nanoseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return num_put() > seen; });
}

}  // namespace troupe::execution
