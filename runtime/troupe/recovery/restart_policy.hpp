#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// Which of a supervisor's children are started again when one fails, as in Erlang's OTP. one_for_one: that
/// one; one_for_all: all; rest_for_one: that one and those started after it.
enum class restart_policy : std::uint8_t { one_for_one, one_for_all, rest_for_one };

struct restart_options {
  restart_policy policy = restart_policy::one_for_one;
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

/// What a supervisor does about a failed child.
struct restart_decision {
  bool escalate = false;      ///< give up and tell the supervisor's own superior; nothing is restarted
  std::vector<int> children;  ///< to stop, last first, and start again, first first; ascending
  std::chrono::steady_clock::duration delay{0};
  bool operator==(const restart_decision&) const = default;
};

/// `child` of `num_children` (in their order of starting) failed at `now`; `earlier_restarts` are the times
/// of this supervisor's restarts so far, in any order. The caller adds `now` to them when it follows the
/// decision. Throws std::invalid_argument for a child outside [0, num_children).
restart_decision decide_restart(const restart_options& options, int child, int num_children,
                                std::span<const std::chrono::steady_clock::time_point> earlier_restarts,
                                std::chrono::steady_clock::time_point now);

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

}  // namespace troupe
