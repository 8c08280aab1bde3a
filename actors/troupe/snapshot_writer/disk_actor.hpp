#pragma once
#include <spdlog/logger.h>

#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <memory>
#include <string>

#include "troupe/fault/fault_plan.hpp"
#include "troupe/messages/snapshot_writer.hpp"
#include "troupe/messages/stage.hpp"

namespace troupe::actors::snapshot_writer {

struct disk_options {
  std::string job_id;
  std::string numeric_class;
  std::uint32_t num_stages = 1;
  /// Allow snapshots in the folder that another job wrote: this job resumes from them.
  bool resume = false;
  /// Refuse to write a state with an infinite or NaN element, which would replace the last finite snapshot.
  /// Tensors that had such elements from the start and are unchanged are allowed.
  bool finite_only = false;
  snapshot::snapshot_store_options store;
  const fault::fault_plan* faults = nullptr;  ///< may be null; outlives the actor
  std::shared_ptr<spdlog::logger> log;
};

/// Performs the blocking file operations of the snapshot_writer, one at a time. Only the snapshot_writer
/// sends to it.
///
/// States: none; each request is complete when it is answered.
///
///   message         -> reply                errors
///   write_part      -> part_on_disk         cannot be written, or is not finite
///   commit_snapshot -> snapshot_committed   the results or the manifest cannot be written
///   find_on_disk    -> found_on_disk        the folder cannot be read
///   read_results    -> results_read         missing or damaged file
///   read_from_disk  -> stage_copy           missing or damaged part
///   discard_parts   -> parts_discarded      cannot be removed
///
/// Monitors no actor. Detached: file operations block, without a time limit.
class disk_state {
 public:
  static constexpr const char* actor_name = "disk";
  disk_state(caf::event_based_actor* self, disk_options options);
  caf::behavior make_behavior();

 private:
  messages::part_on_disk write(messages::write_part& command);
  messages::snapshot_committed commit(const messages::commit_snapshot& command);
  messages::found_on_disk find();
  messages::results_read read(const messages::read_results& wanted) const;
  std::vector<named_tensor> read_earlier_job(const snapshot::snapshot_manifest& manifest,
                                             const messages::read_from_disk& wanted) const;
  messages::stage_copy read(const messages::read_from_disk& wanted) const;

  disk_options options_;
  snapshot::snapshot_store store_;
};

}  // namespace troupe::actors::snapshot_writer
