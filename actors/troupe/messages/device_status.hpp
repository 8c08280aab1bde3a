#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "troupe/job/call.hpp"
#include "troupe/schedule/find_stall.hpp"

namespace troupe::actors::messages {

/// The position of a device in a call: step, action and activity.
struct execution_position {
  std::uint32_t call = 0;
  job::call_kind kind = job::call_kind::barrier;
  schedule::device_activity activity = schedule::device_activity::idle;
  std::uint64_t step = 0;
  std::uint32_t action = 0;  ///< index in the device's list
  bool operator==(const execution_position&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(call, kind, activity, step, action);
  }
};

/// Publishes a device's position to other threads by a seqlock: the device's thread writes, any thread reads,
/// without locks or messages. The supervisor samples it to detect stalls.
class device_status {
 public:
  void set(const execution_position& position) {
    // A reader that finds the same even number before and after has read a consistent position.
    auto number = changes_.load(std::memory_order_relaxed);
    changes_.store(number + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    step_.store(position.step, std::memory_order_relaxed);
    rest_.store(packed(position), std::memory_order_relaxed);
    changes_.store(number + 2, std::memory_order_release);
  }

  struct sample {
    std::uint64_t changes = 0;  ///< equal in two samples: set() was not called in between
    execution_position position;
  };
  /// None if a write was in progress.
  std::optional<sample> read() const {
    auto number = changes_.load(std::memory_order_acquire);
    auto step = step_.load(std::memory_order_relaxed);
    auto rest = rest_.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (number % 2 != 0 || changes_.load(std::memory_order_relaxed) != number) return {};
    return sample{number, unpacked(step, rest)};
  }

 private:
  // [call: 32 | action: 24 | kind: 4 | activity: 4], low bits last
  static constexpr std::uint32_t max_actions = (1u << 24) - 1;
  static std::uint64_t packed(const execution_position& position) {
    return std::uint64_t{position.call} << 32 | std::uint64_t{position.action & max_actions} << 8 |
           static_cast<std::uint64_t>(position.kind) << 4 | static_cast<std::uint64_t>(position.activity);
  }
  static execution_position unpacked(std::uint64_t step, std::uint64_t rest) {
    return {static_cast<std::uint32_t>(rest >> 32), static_cast<job::call_kind>(rest >> 4 & 15),
            static_cast<schedule::device_activity>(rest & 15), step,
            static_cast<std::uint32_t>(rest >> 8) & max_actions};
  }

  std::atomic<std::uint64_t> changes_ = 0;
  std::atomic<std::uint64_t> step_ = 0;
  std::atomic<std::uint64_t> rest_ = packed({});
};

}  // namespace troupe::actors::messages
