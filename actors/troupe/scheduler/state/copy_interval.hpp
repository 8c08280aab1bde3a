#pragma once
#include <chrono>
#include <cstdint>

namespace troupe::actors::scheduler {

/// Chooses how many steps lie between state copies in memory, so that copying takes at most 2 % of the time.
/// Uses measured times of copies and steps.
class copy_interval {
 public:
  /// A step completed `step_s` seconds after the previous one, `copy_s` of which a state copy took (0: none
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

}  // namespace troupe::actors::scheduler
