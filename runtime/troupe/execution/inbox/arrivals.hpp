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

#include "troupe/execution/inbox/inbox.hpp"

namespace troupe::execution {

/// Tensors, and news of other things, for a device that must not wait until it looks at its mailbox, since it
/// may be within an action. Any thread puts them here, and the device's thread moves the tensors into its
/// inbox. Thread-safe.
class arrivals {
 public:
  /// `on_put`: called after each put or note, on its thread; wakes a receiver that sleeps elsewhere.
  explicit arrivals(std::function<void()> on_put = {}) : on_put_(std::move(on_put)) {}

  void put(const transport::tensor_tag& tag, tensor value);
  /// Something else has happened that the device waits for, such as the end of a collective call.
  void note();
  /// After a put or note: whether the device, if it waits in its mailbox, is to be told there that something
  /// is here. Once until it looks.
  bool must_notify() { return !is_notified_.exchange(true); }
  /// Moves all into `into`, and returns whether anything was put or noted since the last time. Throws what
  /// inbox::put throws.
  bool move_to(inbox& into);
  std::size_t num_held() const;
  /// How often a tensor was put, or something noted, ever.
  std::uint64_t num_put() const { return num_put_; }
  /// Sleeps until num_put is more than `seen`, but no longer than `most`.
  void wait_for_more(std::uint64_t seen, std::chrono::nanoseconds most);

 private:
  void wake();

  std::function<void()> on_put_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<transport::tensor_tag, tensor>> held_;
  std::atomic<std::uint64_t> num_put_ = 0, num_seen_ = 0;
  std::atomic<bool> is_notified_ = false;
};

}  // namespace troupe::execution
