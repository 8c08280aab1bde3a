#pragma once
#include <chrono>
#include <cstdint>

namespace troupe {

/// Steps between state copies in memory such that copying takes at most 2 % of the time (ARCHITECTURE 8),
/// learned from what copies and steps took so far.
class copy_interval {
 public:
  /// A step took `step_s` from its completion to the last one's, of which `copy_s` went into a copy (0: none
  /// was due).
  void observe(double step_s, double copy_s);
  /// At least 1; 1 until something was observed.
  std::uint64_t steps() const;
  /// Mean time of a step without its copy; 0 while unknown.
  std::chrono::duration<double> step_time() const { return std::chrono::duration<double>(step_s_); }

 private:
  double step_s_ = 0;
  double copy_s_ = 0;
};

}  // namespace troupe
