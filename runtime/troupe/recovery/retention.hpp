#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "troupe/recovery/inventory.hpp"

namespace troupe::recovery {

/// Who holds the parts of one step.
class step_holders {
 public:
  void add(int rank, const held_part& part);
  /// Whether each of `parts`, or what stands for it, is on disk or in the memory of two processes (of the
  /// one, in a job of one).
  bool outlives_one_loss(std::size_t num_nodes, const std::vector<layout::job_part>& parts) const;

 private:
  struct part_holders {
    std::set<int> in_memory;
    bool on_disk = false;
  };
  bool is_safe(const layout::job_part& part, std::size_t num_nodes) const;

  /// The inner map by replica.
  std::map<layout::part_id, std::map<int, part_holders>> holders_;
};

/// The newest step that survives the loss of any single process. Each of `parts`, or an equal one, is in the
/// memory of two processes (of one where the job has only one), or on disk. 0 if there is none: the initial
/// weights can always be made again.
std::uint64_t newest_committed_step(const std::vector<process_inventory>& inventories,
                                    const std::vector<layout::job_part>& parts);

/// The copies in memory that a process may drop when `committed` is the newest committed step: the older
/// ones. It keeps that step's and every newer one, which may be about to be committed. What lies on disk is
/// the snapshot_store's to delete.
std::vector<held_part> droppable_parts(const std::vector<held_part>& held, std::uint64_t committed);

}  // namespace troupe::recovery
