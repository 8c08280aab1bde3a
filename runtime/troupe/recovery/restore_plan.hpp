#pragma once
#include <cstdint>
#include <vector>

#include "troupe/mesh/hosting.hpp"
#include "troupe/recovery/inventory.hpp"

namespace troupe::recovery {

/// The source from which one part is restored.
struct restore_source {
  layout::part_id part;
  std::int32_t rank = 0;  ///< the member that has it; the host of its cell where it need not be sent
  part_location location = part_location::own_memory;
  layout::part_id held = part;  ///< what that member has: `part`, or an equal part of another replica

  template <class Archive>
  void serialize(Archive& archive) {
    archive(part, rank, location, held);
  }
  bool operator==(const restore_source&) const = default;
};

/// The step that all cells go back to, and where each part comes from. With from_scratch it is step 0 with
/// the initial weights, which the program factory makes again, the same bits each time; `sources` is empty
/// then.
struct restore_plan {
  std::uint64_t step = 0;
  bool from_scratch = true;
  std::vector<restore_source> sources;  ///< [number of the job's parts], in their order

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, from_scratch, sources);
  }
  bool operator==(const restore_plan&) const = default;
};

/// Chooses the newest step above 0 of which some process holds each of `parts`, or one that stands for it;
/// from scratch if there is none.
///
/// A part whose cell is hosted by r comes from memory before disk, from r before others, the part itself
/// before an equal one, from own_memory before peer_memory, and from the lowest rank among equals. The result
/// is a pure function of the set of inventories, in whatever order they come. The step does not depend on
/// `hosts`.
///
/// Generations play no part: by the determinism contract the state after step t is the same bits whichever
/// generation computed it, so parts of one step fit together although a failure came between their making.
restore_plan choose_restore(const std::vector<process_inventory>& inventories,
                            const std::vector<layout::job_part>& parts, const mesh::placement& placed,
                            const mesh::hosting& hosts);

}  // namespace troupe::recovery
