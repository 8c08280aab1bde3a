#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

namespace troupe {

class tensor_waiter;

/// Whose turn it is to receive tensors: a waiter's, who then takes them on its own thread, or nobody's, which
/// is the transport's own. A waiter that has the turn and does not come back for it within `absence` is taken
/// for busy: until it does, the transport's thread receives too.
class receiving_turn {
 public:
  static constexpr auto absence = std::chrono::milliseconds(1);

  /// False: somebody else has it. For any thread.
  bool take(const tensor_waiter& waiter) {
    auto* holder = holder_.load();
    if (holder != &waiter) {
      if (holder || !holder_.compare_exchange_strong(holder, &waiter)) return false;
      ++turns_;
    }
    visit();
    return true;
  }
  /// By who has it, again and again.
  void visit() { visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  bool is_of(const tensor_waiter& waiter) const { return holder_ == &waiter; }
  bool is_taken() const { return holder_ != nullptr; }
  /// By who has it.
  void give_back() { holder_ = nullptr; }
  void begin_sleep() { asleep_ = true; }
  void end_sleep() { asleep_ = false; }

  /// By who has it: whether the transport's thread sleeps until it is woken, and has to be, so that it
  /// notices when who has the turn is away.
  bool must_wake_watcher() { return unwatched_ && unwatched_.exchange(false); }

  /// Whether somebody may have the turn from now on, so that the transport's thread must come back by itself
  /// to see whether they still receive. If not, who takes it next wakes that thread. For the transport's
  /// thread, before it sleeps.
  bool is_to_be_watched() {
    unwatched_ = true;
    if (!is_taken()) {
      if (seen_turns_ == turns_) return false;
      seen_turns_ = turns_;
    }
    unwatched_ = false;
    return true;
  }
  /// Whether somebody else receives. For the transport's thread only.
  bool is_attended() {
    if (!is_taken()) return false;
    auto visits = visits_.load(std::memory_order_relaxed);
    auto now = std::chrono::steady_clock::now();
    if (visits != seen_visits_ || asleep_) {
      seen_visits_ = visits;
      seen_at_ = now;
    }
    return now - seen_at_ < absence;
  }

 private:
  std::atomic<const tensor_waiter*> holder_ = nullptr;
  std::atomic<bool> asleep_ = false;
  std::atomic<bool> unwatched_ = false;
  std::atomic<std::uint64_t> turns_ = 0;
  std::atomic<std::uint64_t> visits_ = 0;  ///< written by who has it
  std::uint64_t seen_turns_ = 0;
  std::uint64_t seen_visits_ = 0;
  std::chrono::steady_clock::time_point seen_at_;
};

}  // namespace troupe
