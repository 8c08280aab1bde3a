#pragma once
#include <vector>

#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe::snapshot {

/// Reads elements of the model's tensors from whichever parts of the snapshot hold them, so that it does not
/// matter how the job that wrote it was laid out. Returns [number of `wanted`] tensors in stored_shape. Reads
/// `first`, if there is such a part, before others, then the other parts of its replica. So a replica gets
/// its own values also where replicas differ. Reads only parts that hold something that is missing still, and
/// of these only the blocks (part_block_bytes) that hold wanted elements: one at a time is in memory.
///
/// Counts of steps that a snapshot of an earlier format lacks are unknown_steps.
///
/// Throws snapshot_error
/// - as stored_part does
/// - if no part holds an element that is wanted, or only as another dtype or of another shape, naming tensor
///   and box
/// - if parts that were read hold different values of an element
std::vector<named_tensor> read_tensors(const snapshot_store& store, const snapshot_manifest& manifest,
                                       const std::vector<tensor_contents>& wanted,
                                       const layout::part_id& first = {});

}  // namespace troupe::snapshot
