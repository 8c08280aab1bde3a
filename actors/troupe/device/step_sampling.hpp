#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::actors::devices {

/// Which steps of a running call a device describes to the scheduler action by action, for those who watch:
/// about four a second. They are those whose number is a multiple of a power of two that grows and shrinks
/// with the time of a step, so that devices which choose by themselves have steps in common.
class step_sampling {
 public:
  static constexpr std::int64_t shortest_ns =
      std::chrono::nanoseconds(std::chrono::milliseconds(250)).count();
  /// Steps with more actions are not described: 36 bytes each go to the scheduler.
  static constexpr std::size_t most_actions = 4096;

  /// Whether to describe `step`, which has ended at `end_ns` of the steady clock.
  bool takes(std::uint64_t step, std::size_t num_actions, std::int64_t end_ns) {
    if (num_actions > most_actions || step % every_ != 0) return false;
    auto since = end_ns - taken_ns_;
    taken_ns_ = end_ns;
    if (since < shortest_ns) every_ *= 2;
    if (since > 4 * shortest_ns && every_ > 1) every_ /= 2;
    return true;
  }
  std::uint64_t every() const { return every_; }

 private:
  std::uint64_t every_ = 1;  ///< steps between two samples: a power of two
  std::int64_t taken_ns_ = 0;
};

}  // namespace troupe::actors::devices
