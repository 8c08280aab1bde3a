#pragma once
#include <cstdint>
#include <vector>

#include "troupe/placement/hosting.hpp"
#include "troupe/recovery/inventory.hpp"

namespace troupe {

/// The source from which one stage restores its state.
struct restore_source {
  std::uint32_t stage = 0;
  std::int32_t rank = 0;  ///< the member that has the part; the stage's host where it need not be sent
  part_location location = part_location::own_memory;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(stage, rank, location);
  }
  bool operator==(const restore_source&) const = default;
};

/// The step that all stages go back to, and where each gets its state. from_scratch: step 0 with the initial
/// weights, which the program factory makes again, the same bits each time; `sources` is empty then.
struct restore_plan {
  std::uint64_t step = 0;
  bool from_scratch = true;
  std::vector<restore_source> sources;  ///< [num_stages], by stage

  template <class Archive>
  void serialize(Archive& archive) {
    archive(step, from_scratch, sources);
  }
  bool operator==(const restore_plan&) const = default;
};

/// Chooses the newest step above 0 of which some node holds every stage's part; from scratch if there is
/// none.
///
/// A stage hosted by r takes its part from memory before disk, from r before others, from own_memory before
/// peer_memory, and from the lowest rank among equals: a pure function of the set of inventories, in whatever
/// order they come. The step does not depend on `hosts`.
///
/// Generations play no part: by the determinism contract the state after step t is the same bits whichever
/// generation computed it, so parts of one step fit together although a failure came between their making.
restore_plan choose_restore(const std::vector<node_inventory>& inventories, const placement& placed,
                            const hosting& hosts);

}  // namespace troupe
