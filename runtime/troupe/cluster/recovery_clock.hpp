#pragma once
#include <chrono>
#include <optional>

#include "troupe/cluster/membership.hpp"

namespace troupe::cluster {

/// Measures the phases of a recovery, from the first loss after a view to the end of the replay, further
/// losses included. Each phase lasts from the previous milestone to its own, so the phases add up to the
/// total. A milestone reported twice keeps its first time within a generation.
class recovery_clock {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  bool running() const { return running_; }
  /// A loss or a request ended a generation. Starts the clock if it is stopped; later losses belong to the
  /// same recovery.
  void begin(const member_loss& loss, time_point died, time_point detected);
  /// Generation `generation` was raised and the survivors were told.
  void fenced(std::uint64_t generation, time_point now);
  /// A survivor acknowledged the generation.
  void acknowledged(time_point now);
  /// All survivors have acknowledged and all replacements have joined.
  void viewed(time_point now);
  /// The scheduler reached `phase`. Returns the report when the recovery is complete, and stops the clock.
  std::optional<recovery_report> reached(recovery_phase phase, time_point now);

 private:
  recovery_report report(time_point replayed) const;

  bool running_ = false;
  member_loss loss_;
  std::uint64_t generation_ = 0;
  bool was_fenced_ = false;
  time_point died_, detected_, fenced_, acknowledged_, viewed_;
  std::optional<time_point> restored_, rebuilt_;
};

}  // namespace troupe::cluster
