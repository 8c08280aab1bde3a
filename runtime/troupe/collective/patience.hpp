#pragma once
#include <chrono>

namespace troupe {

/// How a thread waits for what other members do, round by round. It spins at first: a member that computes at
/// the same pace comes within microseconds. Then it yields its core, which one that was descheduled may be
/// waiting for. Then it sleeps.
///
/// Spinning is tried less when it is of no use.
class patience {
 public:
  using duration = std::chrono::steady_clock::duration;
  enum class step { spin, yield, sleep };

  /// A wait begins.
  void begin();
  /// What to do before looking again, after a look that brought nothing.
  step next();
  /// It yielded, and had the core again after this time.
  void yielded(duration took) { yielding_ += took; }
  /// Something came: from here on it is another wait.
  void moved();

 private:
  int spinning_rounds_ = most_spinning_rounds;
  int rounds_ = 0;
  duration yielding_{0};

  static constexpr int most_spinning_rounds = 400;
  static constexpr int least_spinning_rounds = 2;
  static constexpr duration longest_yielding = std::chrono::microseconds(200);
};

}  // namespace troupe
