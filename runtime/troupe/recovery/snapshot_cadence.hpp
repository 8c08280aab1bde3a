#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

namespace troupe::recovery {

/// How often state is copied and written. A step is named by the number of optimizer steps applied.
struct snapshot_cadence {
  /// Copies in host memory, a step in so many. 1: the least to compute again after a failure; more: less
  /// copying. 0: none.
  std::uint64_t memory_every_steps = 1;
  /// Snapshots on disk, a step in so many. 0: by time, see disk_interval.
  std::uint64_t disk_every_steps = 0;
  /// Between snapshots on disk, where disk_every_steps is 0. Longer: less writing, more lost if all processes
  /// go at once. 0: none.
  std::chrono::duration<double> disk_interval = std::chrono::seconds(60);
};

/// Which copies of the state to make right after a step.
struct due_snapshots {
  bool memory = false;  ///< copy it; always with `disk`, which writes the copy
  bool disk = false;
  bool operator==(const due_snapshots&) const = default;
};

/// The copies due after `step`. Every process computes this itself with the same result, which depends on the
/// step, the options and the scheduler's announcement, not on a clock. `announced_disk_step` is the last
/// announced value of next_disk_step.
due_snapshots snapshot_due(std::uint64_t step, const snapshot_cadence& cadence,
                           std::optional<std::uint64_t> announced_disk_step);

/// The scheduler's figures when it grants further steps.
struct disk_clock {
  std::uint64_t steps_done = 0;                ///< steps that the whole pipeline has finished
  std::uint64_t granted_until = 0;             ///< the step that stages may have reached already
  std::uint64_t next_credit = 0;               ///< the end of the credit that would carry the announcement
  std::chrono::duration<double> step_time{0};  ///< measured mean; 0 while unknown
  std::chrono::duration<double> since_last_disk{
      0};  ///< since the last snapshot on disk began, or the job did
};

/// If snapshots on disk are made by time, one process chooses the step and announces it with the next credit,
/// so that every stage knows it before it can reach it. It lies in (granted_until, next_credit] and is the
/// step that ends nearest to disk_interval after the last snapshot. Empty if that is a later step (call again
/// at the next credit), or if the cadence is not by time. The scheduler does not call this while an announced
/// step is not written yet.
std::optional<std::uint64_t> next_disk_step(const disk_clock& clock, const snapshot_cadence& cadence);

}  // namespace troupe::recovery
