#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "troupe/messages/scheduler.hpp"

namespace troupe::actors::scheduler {

/// The snapshots being written to disk: which parts are written, and for how long they wait.
class disk_snapshots {
 public:
  using clock = std::chrono::steady_clock;
  /// Bound of snapshots in progress, so that no process holds more than two states for the disk.
  static constexpr std::size_t max_pending = 2;
  explicit disk_snapshots(clock::time_point generation_began) : last_(generation_began) {}

  /// A process reports that the last snapshot, or the job's start, was this long ago. Time counts across
  /// generations: otherwise failures more frequent than the interval would prevent all snapshots.
  void note_since_last(std::chrono::duration<double> since, clock::time_point now);
  void announced(std::uint64_t step, clock::time_point now);
  /// Returns all parts, in the order of their ids, if this was the last one. A part that could not be written
  /// ends its snapshot.
  std::optional<std::vector<snapshot::manifest_part>> add(const messages::part_written& part,
                                                          std::size_t num_parts);
  /// The steps whose snapshots lack one of these parts, ascending.
  std::vector<std::uint64_t> steps_without(const std::vector<layout::part_id>& parts) const;
  /// The manifest of `step` is written, or will not be.
  void ended(std::uint64_t step);

  bool is_pending(std::uint64_t step) const { return pending_.contains(step); }
  std::size_t num_pending() const { return pending_.size(); }
  /// Every part of `step` has been copied in memory; writing starts.
  void copied(std::uint64_t step, clock::time_point now);
  /// How long the oldest copied snapshot has waited for the disk; 0 if there is none.
  std::chrono::duration<double> waiting_for(clock::time_point now) const;
  std::chrono::duration<double> since_last(clock::time_point now) const { return now - last_; }

 private:
  struct pending_snapshot {
    std::optional<clock::time_point> copied;
    std::map<layout::part_id, snapshot::manifest_part> parts;
  };
  std::map<std::uint64_t, pending_snapshot> pending_;
  clock::time_point last_;
};

}  // namespace troupe::actors::scheduler
