#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "troupe/execution/inbox.hpp"

namespace troupe::execution {

/// Tensors for a device that must not wait until it looks at its mailbox, since it may be within an action.
/// Any thread puts them here, and the device's thread moves them into its inbox. Thread-safe.
class arrivals {
 public:
  /// `on_put`: called after each put, on its thread; wakes a receiver that sleeps elsewhere.
  explicit arrivals(std::function<void()> on_put = {}) : on_put_(std::move(on_put)) {}

  void put(const transport::tensor_tag& tag, tensor value);
  /// After a put: whether the device, if it waits in its mailbox, is to be told there that something is here.
  /// Once until it looks.
  bool must_notify() { return !is_notified_.exchange(true); }
  /// Moves all into `into`, and returns whether there were any. Throws what inbox::put throws.
  bool move_to(inbox& into);
  std::size_t num_held() const;
  /// How often a tensor was put, ever.
  std::uint64_t num_put() const { return num_put_; }
  /// Sleeps until more than `seen` tensors were put, but no longer than `most`.
  void wait_for_more(std::uint64_t seen, std::chrono::nanoseconds most);

 private:
  std::function<void()> on_put_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<transport::tensor_tag, tensor>> held_;
  std::atomic<std::uint64_t> num_put_ = 0, num_moved_ = 0;
  std::atomic<bool> is_notified_ = false;
};

}  // namespace troupe::execution
