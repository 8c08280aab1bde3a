#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "troupe/recovery/inventory.hpp"
#include "troupe/recovery/restore_plan.hpp"
#include "troupe/recovery/retention.hpp"

namespace troupe::actors::scheduler {

/// Which processes hold which copies of the job's parts, as reported to the scheduler. Determines the
/// committed step: the newest one that survives the loss of any single process. The cost of adding a copy
/// does not depend on the number of earlier ones.
class held_copies {
 public:
  /// Replaces the known copies of a process.
  void set(const recovery::process_inventory& inventory);
  /// Adds a copy that a process holds. Copies older than the newest committed step are forgotten.
  void add(int rank, const recovery::held_part& part, const std::vector<layout::job_part>& parts);
  /// All processes restore `plan`: forgets copies of later steps, which are rolled back.
  void roll_back(const recovery::restore_plan& plan);
  /// A process has lost the copies that it kept for its peer.
  void lose_replicas(int rank, const std::vector<layout::job_part>& parts);
  std::vector<recovery::process_inventory> inventories() const;
  /// The newest step that has been committed since the last roll back. The owner of each part, or of an equal
  /// one, still holds it, also if the second copies were lost since, so that it is no longer committed.
  std::uint64_t held_by_owners(const std::vector<layout::job_part>& parts) const;
  std::uint64_t committed_step(const std::vector<layout::job_part>& parts) const;

  /// Copies of `step` have been requested.
  void request(std::uint64_t step) { requested_.insert(step); }
  /// Whether copies of a step up to `step` are requested, and not yet committed since.
  bool is_uncommitted(std::uint64_t step, const std::vector<layout::job_part>& parts) const;
  /// Number of steps above the newest committed one whose copies are requested or in progress.
  std::size_t num_uncommitted(const std::vector<layout::job_part>& parts);

 private:
  void count_anew();
  void forget_older(std::uint64_t committed);

  std::map<int, recovery::process_inventory> processes_;
  std::map<std::uint64_t, recovery::step_holders>
      steps_;  ///< who holds copies of each step, computed from `processes_`
  /// Cached; none: must be computed from `steps_`.
  mutable std::optional<std::uint64_t> committed_;
  std::uint64_t committed_before_loss_ = 0;
  std::set<std::uint64_t> requested_;
};

}  // namespace troupe::actors::scheduler
