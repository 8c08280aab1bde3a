#pragma once
#include <caf/actor.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/actor/message_storage.hpp"
#include "troupe/job/call_log.hpp"
#include "troupe/snapshot/snapshot_store.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::actors::messages {

/// Supervisor -> snapshot_writer: a generation begins.
struct writer_generation {
  std::uint64_t generation = 0;
  caf::actor scheduler;
  double since_disk_s = 0;  ///< seconds, the largest value of all processes; see process_inventory
};

/// Stage -> snapshot_writer: write this copy. The snapshot_writer sends part_written to the scheduler.
/// snapshot_writer -> disk, a request: write it. Reply: part_on_disk.
struct write_part {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  layout::part_id part;
  tensor packed;
  /// Tensors that had infinite or NaN elements in the initial state, with their initial values; may be null.
  std::shared_ptr<const std::vector<named_tensor>> began_non_finite = {};
};
struct part_on_disk {
  snapshot::manifest_part entry;
};

/// Scheduler -> snapshot_writer of its process -> disk, a request: all parts are on disk, write the manifest.
struct commit_snapshot {
  snapshot::snapshot_manifest manifest;  ///< `calls` is filled in by the disk
  std::shared_ptr<const job::call_log> results;
  std::size_t num_results = 0;  ///< the first ones of `results` are part of the snapshot
};
struct snapshot_committed {
  std::uint64_t step = 0;
};

/// Scheduler -> snapshot_writer of its process -> disk, a request: find the newest valid snapshot that this
/// job may use. If there is one, damaged newer snapshots are set aside.
struct find_on_disk {};
struct found_on_disk {
  std::optional<snapshot::snapshot_manifest> manifest;
  std::vector<std::string> unusable;  ///< which snapshots cannot be used, and why
};

/// Scheduler -> snapshot_writer of its process -> disk, a request: append the results of the calls before the
/// snapshot to `to`.
struct read_results {
  snapshot::snapshot_manifest manifest;
  std::shared_ptr<job::call_log> to;
};
struct results_read {
  std::size_t num_known = 0;  ///< number of results in read_results::to afterwards
};

/// Supervisor -> snapshot_writer -> disk, a request: these tensors from the snapshot of `step`, whichever of
/// its parts hold them; the part with the same id is looked at first. Answered with stage_copy.
struct read_from_disk {
  std::uint64_t step = 0;
  layout::part_id part;
  std::vector<tensor_contents> wanted;
  /// Read the step's metrics of this many replicas too, as the last tensors; 0: none.
  std::int32_t metrics_of_replicas = 0;
  /// Given instead of the tensors of these names of a snapshot that another job wrote.
  std::vector<named_tensor> new_optimizer = {};
};

/// Supervisor -> snapshot_writer -> disk: the snapshot of this step has failed, remove its parts. A request
/// between snapshot_writer and disk only.
struct discard_parts {
  std::uint64_t step = 0;
};
struct parts_discarded {
  std::uint64_t step = 0;
};

/// snapshot_writer -> itself, delayed: check whether the disk has made progress with operation `number`.
struct check_disk {
  std::uint64_t number = 0;
};

}  // namespace troupe::actors::messages

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::writer_generation)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::write_part)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::part_on_disk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::commit_snapshot)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::snapshot_committed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::find_on_disk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::found_on_disk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::read_results)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::results_read)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::read_from_disk)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::discard_parts)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::parts_discarded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::actors::messages::check_disk)
