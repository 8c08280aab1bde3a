#pragma once
#include <spdlog/logger.h>

#include <caf/actor.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "troupe/snapshotter/messages.hpp"
#include "troupe/stage/messages.hpp"

namespace troupe {

struct snapshotter_options {
  int rank = 0;
  std::string job_id;
  std::string numeric_class;
  std::string host;
  std::uint32_t num_stages = 1;
  /// Use snapshots that another job wrote into the folder: this job goes on from them.
  bool resume = false;
  std::optional<snapshot_store_options> store;  ///< none: memory only
  std::shared_ptr<spdlog::logger> log;
};

/// Keeps peers' state copies in memory, and writes, verifies and reads snapshots on disk, off the training
/// path.
///
///   message             -> reply                          errors
///   snapshot_generation ->
///   replica_arrived     -> part_held to the scheduler
///   write_part          -> part_written to the scheduler  cannot be written: in part_written, and warned
///   commit_snapshot     -> snapshot_committed             the manifest cannot be written
///   find_on_disk        -> found_on_disk                  the folder cannot be read
///   read_from_disk      -> stage_copy                     missing or damaged part
///   get_replica         -> stage_copy                     no such replica
///   list_parts          -> held_parts
///   drop_before         ->
///
/// Monitors nobody. Detached: it waits for the disk.
class snapshotter_state {
 public:
  static constexpr const char* actor_name = "snapshotter";
  snapshotter_state(caf::event_based_actor* self, snapshotter_options options);
  caf::behavior make_behavior();

 private:
  void on_generation(const snapshot_generation& begun);
  void on_replica(const replica_arrived& arrived);
  void on_write(const write_part& order);
  caf::result<snapshot_committed> on_commit(const commit_snapshot& order);
  caf::result<found_on_disk> on_find();
  caf::result<stage_copy> on_read(const read_from_disk& wanted);
  caf::result<stage_copy> on_get(const get_replica& wanted) const;
  held_parts on_list() const;
  void on_drop(const drop_before& order);

  using step_and_stage = std::pair<std::uint64_t, std::uint32_t>;
  struct replica {
    std::uint64_t generation = 0;
    tensor packed;
  };

  // constant
  caf::event_based_actor* self_;
  snapshotter_options options_;
  std::optional<snapshot_store> store_;
  // state
  std::map<step_and_stage, replica> replicas_;
  std::chrono::steady_clock::time_point
      last_on_disk_;  ///< when the newest part was written, or the job began
  // current generation
  std::uint64_t generation_ = 0;
  caf::actor scheduler_;
};

}  // namespace troupe
