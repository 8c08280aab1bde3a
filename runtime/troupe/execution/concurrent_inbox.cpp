#include "troupe/execution/concurrent_inbox.hpp"

#include <utility>

namespace troupe {

void concurrent_inbox::put(const tensor_tag& tag, tensor value) noexcept {
  {
    std::lock_guard lock(mutex_);
    try {
      held_.put(tag, std::move(value));
    } catch (...) {
      failure_ = std::current_exception();
    }
    ++num_put_;
  }
  changed_.notify_one();
  if (on_put_) on_put_();
}

std::optional<tensor> concurrent_inbox::take(const tensor_tag& tag) {
  std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return held_.take(tag);
}

std::size_t concurrent_inbox::num_held() const {
  std::lock_guard lock(mutex_);
  return held_.num_held();
}

void concurrent_inbox::begin_generation(std::uint64_t generation) {
  std::lock_guard lock(mutex_);
  failure_ = nullptr;
  held_.begin_generation(generation);
}

void concurrent_inbox::forget_before(std::uint32_t call, std::uint64_t step) {
  std::lock_guard lock(mutex_);
  held_.forget_before(call, step);
}

void concurrent_inbox::wait_for_more(std::uint64_t seen, std::chrono::nanoseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return num_put() > seen; });
}

}  // namespace troupe
