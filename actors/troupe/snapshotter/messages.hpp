#pragma once
#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/snapshot/snapshot_store.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Supervisor -> snapshotter: a generation begins; copies of steps after `step` belong to a future that is
/// rolled back.
struct snapshot_generation {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  caf::actor scheduler;
  double since_disk_s = 0;  ///< as of now, what the nodes know together; see node_inventory
};

/// Transport -> snapshotter: a peer's copy to keep.
struct replica_arrived {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t stage = 0;
  tensor packed;
};

/// Stage -> snapshotter: this copy is due on disk. Answered to the scheduler with part_written.
struct write_part {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::uint32_t stage = 0;
  tensor packed;
};

/// Supervisor -> snapshotter, a request: the replica of a stage's copy. Answered with stage_copy.
struct get_replica {
  std::uint64_t step = 0;
  std::uint32_t stage = 0;
};

/// Scheduler -> snapshotter of its node, a request: every part is on disk, make the snapshot exist.
struct commit_snapshot {
  snapshot_manifest manifest;
};
struct snapshot_committed {
  std::uint64_t step = 0;
};

/// Scheduler -> snapshotter of its node, a request: the newest valid snapshot on disk that this job may use.
struct find_on_disk {};
struct found_on_disk {
  std::optional<snapshot_manifest> manifest;
};

/// Supervisor -> snapshotter, a request: a stage's state from disk. Answered with stage_copy.
struct read_from_disk {
  std::uint64_t step = 0;
  std::uint32_t stage = 0;
};

}  // namespace troupe

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::snapshot_generation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::replica_arrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::write_part)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::get_replica)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::commit_snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::snapshot_committed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::find_on_disk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::found_on_disk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::read_from_disk)
