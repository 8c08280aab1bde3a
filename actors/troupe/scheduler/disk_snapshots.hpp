#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "troupe/scheduler/messages.hpp"

namespace troupe {

/// Which snapshots are on their way to disk, and how far they are.
class disk_snapshots {
 public:
  using clock = std::chrono::steady_clock;
  /// On their way at once, so that no node holds more than two states for the disk.
  static constexpr std::size_t most_pending = 2;
  explicit disk_snapshots(clock::time_point generation_began) : last_(generation_began) {}

  /// A node knows that the last one, or the job's beginning, was so long ago: what the generations before
  /// this one left is not forgotten, else failures more frequent than the interval would keep the disk empty.
  void note_since_last(std::chrono::duration<double> since, clock::time_point now);
  void announced(std::uint64_t step, clock::time_point now);
  /// Returns the parts, by stage, when this was the last one missing. A part that could not be written ends
  /// its snapshot.
  std::optional<std::vector<manifest_part>> add(const part_written& part, std::uint32_t num_stages);
  /// The manifest of `step` is written, or will not be.
  void ended(std::uint64_t step);

  bool is_pending(std::uint64_t step) const { return pending_.contains(step); }
  std::size_t num_pending() const { return pending_.size(); }
  /// The state after `step` has been copied everywhere: it is the disk's turn.
  void copied(std::uint64_t step, clock::time_point now);
  /// How long the oldest of those waits for the disk; 0 if none does.
  std::chrono::duration<double> waiting_for(clock::time_point now) const;
  std::chrono::duration<double> since_last(clock::time_point now) const { return now - last_; }

 private:
  struct pending_snapshot {
    std::optional<clock::time_point> copied;
    std::map<std::uint32_t, manifest_part> parts;
  };
  std::map<std::uint64_t, pending_snapshot> pending_;
  clock::time_point last_;
};

}  // namespace troupe
