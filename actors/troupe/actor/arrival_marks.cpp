#include "troupe/actor/arrival_marks.hpp"

#include <algorithm>

namespace troupe::actors::actor {

/// The count is read under the lock: of two messages that come at once, the one that waits for the lock is
/// counted after the other's mark.
void arrival_marks::mark(const std::atomic<std::uint64_t>& num_arrived, std::uint64_t num_taken,
                         std::int64_t now_ns) {
  std::lock_guard lock(mutex_);
  if (!is_due(now_ns, num_arrived.load(std::memory_order_relaxed) == num_taken)) return;
  forget_before(num_taken);
  if (num_kept_ == num_marks) drop_every_second();
  marks_[num_kept_++] = {num_arrived.load(std::memory_order_relaxed), now_ns};
  newest_ns_.store(now_ns, std::memory_order_relaxed);
}

/// Keeps the newest mark that is not after the oldest message that waits.
void arrival_marks::forget_before(std::uint64_t num_taken) {
  auto end = marks_.begin() + static_cast<std::ptrdiff_t>(num_kept_);
  auto after = std::find_if(marks_.begin(), end, [&](const entry& one) { return one.number > num_taken; });
  if (after != marks_.begin())
    num_kept_ = static_cast<std::size_t>(std::move(after - 1, end, marks_.begin()) - marks_.begin());
  if (num_kept_ <= 1) interval_ns_.store(shortest_interval_ns, std::memory_order_relaxed);
}

void arrival_marks::drop_every_second() {
  num_kept_ /= 2;
  for (std::size_t i = 0; i < num_kept_; ++i) marks_[i] = marks_[2 * i];
  interval_ns_.store(2 * interval_ns_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

std::int64_t arrival_marks::arrival_ns(std::uint64_t number) const {
  std::lock_guard lock(mutex_);
  if (num_kept_ == 0) return 0;
  auto end = marks_.begin() + static_cast<std::ptrdiff_t>(num_kept_);
  auto after = std::find_if(marks_.begin(), end, [&](const entry& one) { return one.number > number; });
  return (after == marks_.begin() ? after : after - 1)->at_ns;
}

}  // namespace troupe::actors::actor
