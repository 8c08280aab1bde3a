#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "troupe/execution/inbox.hpp"

namespace troupe {

/// An inbox that any thread fills while the device's thread waits within an action, when it cannot look at
/// its mailbox. Thread-safe.
class concurrent_inbox {
 public:
  /// `on_put`: called after each put, on its thread; wakes a receiver that sleeps elsewhere.
  explicit concurrent_inbox(std::function<void()> on_put = {}) : on_put_(std::move(on_put)) {}

  void put(const tensor_tag& tag, tensor value) noexcept;
  /// Throws what inbox::put threw of any tensor: that the device hears, and not the thread that brought it.
  std::optional<tensor> take(const tensor_tag& tag);
  void begin_generation(std::uint64_t generation);
  void forget_before(std::uint32_t call, std::uint64_t step);
  std::size_t num_held() const;
  /// How often a tensor was put, ever.
  std::uint64_t num_put() const { return num_put_; }
  /// Sleeps until more than `seen` tensors were put, but no longer than `most`.
  void wait_for_more(std::uint64_t seen, std::chrono::nanoseconds most);

 private:
  std::function<void()> on_put_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  inbox held_;
  std::exception_ptr failure_;
  std::atomic<std::uint64_t> num_put_ = 0;
};

}  // namespace troupe
