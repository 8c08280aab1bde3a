#pragma once
#include <algorithm>
#include <chrono>

namespace troupe::collective {

/// Between two looks at memory that another core will write to.
inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// How a thread waits, round by round, for what other members do. It spins at first, since a member that
/// computes at the same pace arrives within microseconds. Then it yields its core, which may be the one that
/// a descheduled member waits for. Then it sleeps.
///
/// The number of spins adapts: it is halved after a wait that spinning did not end, and grows by one after a
/// wait that it did.
class backoff {
 public:
  using duration = std::chrono::steady_clock::duration;
  enum class action { spin, yield, sleep };

  /// A wait begins.
  void begin() {
    num_rounds_ = 0;
    yielded_ = {};
  }
  /// What to do after a round without progress.
  action next() {
    if (++num_rounds_ < num_spins_) return action::spin;
    return yielded_ <= longest_yielding ? action::yield : action::sleep;
  }
  /// A yield took this long.
  void add_yield(duration took) { yielded_ += took; }
  /// There was progress: the next round begins another wait.
  void made_progress() {
    if (num_rounds_ == 0) return;
    num_spins_ = num_rounds_ < num_spins_ ? std::min(num_spins_ + 1, most_spins)
                                          : std::max(num_spins_ / 2, fewest_spins);
    begin();
  }

 private:
  static constexpr int most_spins = 400;
  static constexpr int fewest_spins = 2;
  static constexpr duration longest_yielding = std::chrono::microseconds(200);

  int num_spins_ = most_spins;
  int num_rounds_ = 0;
  duration yielded_{0};
};

}  // namespace troupe::collective
