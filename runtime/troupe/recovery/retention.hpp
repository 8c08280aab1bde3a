#pragma once
#include <cstdint>
#include <vector>

#include "troupe/recovery/inventory.hpp"

namespace troupe {

/// The newest step that no single lost process can take away: every stage's part is in the memory of two
/// nodes (of one where the job has only one), or on disk. 0 if there is none: the initial weights can always
/// be made again.
std::uint64_t newest_committed_step(const std::vector<node_inventory>& inventories, std::uint32_t num_stages);

/// The copies in memory that a node may drop when `committed` is the newest committed step: the older ones.
/// It keeps that step's and every newer one, which may be about to be committed. What lies on disk is the
/// snapshot_store's to delete.
std::vector<held_part> droppable_parts(const std::vector<held_part>& held, std::uint64_t committed);

}  // namespace troupe
