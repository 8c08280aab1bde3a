#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace troupe::actors::actor {

/// Tells when a message came into a mailbox, without a time for each. Messages are numbered from 0 in the
/// order in which they came.
///
/// A mark is the number of a message and the time of its arrival. A message gets a mark if the newest one is
/// `interval` old. All others came less than an interval after the mark before them, and their time is taken
/// to be that mark's. The interval is 10 ms (`shortest_interval_ns`). When there are `num_marks`, every
/// second one is dropped and the interval doubles. It is at most a fifteenth of the longest wait since the
/// mailbox was empty, and 10 ms again when all have been taken. So a message seems older than it is by less
/// than an interval. Where marks were dropped it may seem older by the pauses between messages too: it has
/// the mark before the pause.
///
/// Thread-safe. Costs a comparison per message, and a lock per interval.
class arrival_marks {
 public:
  static constexpr std::size_t num_marks = 32;
  static constexpr std::int64_t shortest_interval_ns = 10'000'000;

  /// Whether a message that comes now gets a mark; `is_first`: no other one waits.
  bool is_due(std::int64_t now_ns, bool is_first) const {
    auto interval = is_first ? shortest_interval_ns : interval_ns_.load(std::memory_order_relaxed);
    return now_ns - newest_ns_.load(std::memory_order_relaxed) >= interval;
  }
  /// A message comes at this time, if is_due, before it is counted in `num_arrived`. Those below `num_taken`
  /// are forgotten.
  void mark(const std::atomic<std::uint64_t>& num_arrived, std::uint64_t num_taken, std::int64_t now_ns);
  /// When this message came; 0: no message has come. It is no older than those that were forgotten.
  std::int64_t arrival_ns(std::uint64_t number) const;

 private:
  struct entry {
    std::uint64_t number = 0;
    std::int64_t at_ns = 0;
  };
  void forget_before(std::uint64_t num_taken);
  void drop_every_second();

  std::atomic<std::int64_t> newest_ns_ = INT64_MIN / 2;
  std::atomic<std::int64_t> interval_ns_ = shortest_interval_ns;
  mutable std::mutex mutex_;
  std::array<entry, num_marks> marks_;  ///< the first `num_kept_`, ascending
  std::size_t num_kept_ = 0;
};

}  // namespace troupe::actors::actor
