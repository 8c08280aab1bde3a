#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace troupe::recovery {

/// Which of a supervisor's children are started again when one fails, as in Erlang's OTP. one_for_one: that
/// one; one_for_all: all; rest_for_one: that one and those started after it.
enum class restart_policy : std::uint8_t { one_for_one, one_for_all, rest_for_one };

struct restart_options {
  /// More than `intensity` restarts within `period` mean that starting again does not help. 0: never restart.
  int intensity = 3;
  std::chrono::steady_clock::duration period = std::chrono::seconds(30);
  /// The first restart within a period comes at once, the second after `backoff`, each further one after
  /// twice as long, up to `backoff_limit`.
  std::chrono::steady_clock::duration backoff = std::chrono::milliseconds(50);
  std::chrono::steady_clock::duration backoff_limit = std::chrono::seconds(2);
};

/// The children that `policy` starts again when `child` of `num_children` (in their order of starting) fails;
/// ascending. Throws std::invalid_argument for a child outside [0, num_children).
std::vector<int> children_to_restart(restart_policy policy, int child, int num_children);

/// Counts the restarts of one group of children and applies intensity, period and backoff of its options.
class restart_intensity {
 public:
  using clock = std::chrono::steady_clock;
  explicit restart_intensity(const restart_options& options) : options_(options) {}

  /// The delay of a restart for a failure at `now`, which counts from then on; none: the intensity is
  /// exceeded, and nothing is counted.
  std::optional<clock::duration> restart(clock::time_point now);
  /// Restarts counted within the period before `now`.
  int num_recent(clock::time_point now) const;
  const restart_options& options() const { return options_; }

 private:
  restart_options options_;
  std::vector<clock::time_point> times_;
};

}  // namespace troupe::recovery
