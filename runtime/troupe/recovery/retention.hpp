#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "troupe/recovery/inventory.hpp"

namespace troupe {

/// Who holds the parts of one step.
class step_holders {
 public:
  void add(int rank, const held_part& part);
  /// Whether there is a part of every stage, each on disk or in the memory of two nodes (of the one, in a job
  /// of one).
  bool outlives_one_loss(std::size_t num_nodes, std::uint32_t num_stages) const;

 private:
  struct part_holders {
    std::set<int> in_memory;
    bool on_disk = false;
  };
  std::map<std::uint32_t, part_holders> stages_;
};

/// The newest step that survives the loss of any single process: every stage's part is in the memory of two
/// nodes (of one where the job has only one), or on disk. 0 if there is none: the initial weights can always
/// be made again.
std::uint64_t newest_committed_step(const std::vector<node_inventory>& inventories, std::uint32_t num_stages);

/// The copies in memory that a node may drop when `committed` is the newest committed step: the older ones.
/// It keeps that step's and every newer one, which may be about to be committed. What lies on disk is the
/// snapshot_store's to delete.
std::vector<held_part> droppable_parts(const std::vector<held_part>& held, std::uint64_t committed);

}  // namespace troupe
