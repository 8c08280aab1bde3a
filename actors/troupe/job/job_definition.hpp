#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/agreement/job_description.hpp"
#include "troupe/execution/replicas/group_maker.hpp"
#include "troupe/job/latest_copies.hpp"
#include "troupe/job/trained_data.hpp"
#include "troupe/mesh/hosting.hpp"
#include "troupe/program/non_finite_policy.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/recovery/snapshot_cadence.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/snapshot/manifest.hpp"
#include "troupe/snapshot/snapshot_access.hpp"

namespace troupe::actors::job {

/// When state copies are made and where they are stored.
struct snapshot_settings {
  /// memory_every_steps 0 here means: adapted so that copying takes at most 2 % of the time.
  recovery::snapshot_cadence cadence;
  std::filesystem::path folder;  ///< empty: memory only
  int keep = 2;                  ///< committed snapshots kept on disk
  snapshot::snapshot_access access = snapshot::snapshot_access::owner;
};

/// What a job does when it has lost its state: all processes that held a stage's copies were lost at once,
/// and there is no snapshot on disk.
enum class lost_state_policy : std::uint8_t { stop, restart };

/// One training job; equal in all processes.
struct job_definition {
  /// Counts the jobs that a process defines one after the other, from 0.
  std::uint32_t number = 0;
  /// The first call of this job; earlier calls belong to earlier jobs.
  std::uint32_t first_call = 0;
  program::program_factory make_program;
  /// Of this process: where the devices compute that it hosts.
  mesh::process_places places;
  std::uint64_t memory_limit_bytes = 0;  ///< of each device, see logical_device; 0: none
  // Set by place().
  plan training;
  mesh::placement placed;  ///< the logical device of each cell
  std::vector<layout::job_part> parts;
  /// The member of each logical device when the job begins; later ones come from assign.
  mesh::hosting home;
  /// Of this process: makes the groups over which replicas in several processes add up gradients; empty: they
  /// do so by messages.
  execution::group_maker make_group;
  int num_threads = 1;
  /// Of the data set, in a run of the plan of call_kind::train, over all replicas; 0: not known.
  std::int64_t samples_per_run = 0;
  /// The learning rate of an optimizer step, from 0, for those who watch; empty: not known. Thread-safe.
  std::function<double(std::uint64_t step)> learning_rate;
  snapshot_settings snapshots;
  bool resume = false;
  non_finite_policy on_non_finite = non_finite_policy::stop;
  /// Rank 0 of a job that resumes: the snapshot to resume from; none: start from the initial weights.
  std::optional<snapshot::snapshot_manifest> begin_with;
  /// Rank 0: an earlier incarnation of this process knew that trained state of this job was safe.
  bool trained_before = false;
  lost_state_policy on_lost_state = lost_state_policy::stop;
  /// Options that the result's bits depend on. Written to every manifest; must equal a resumed snapshot's.
  std::vector<std::pair<std::string, std::string>> identity;
  /// Written to every manifest as well: what may be another when a job resumes (snapshot_manifest::settings).
  std::vector<std::pair<std::string, std::string>> settings;
  /// A job that resumes begins with a new state of its optimizer.
  bool reset_optimizer = false;
  /// Written to every manifest as well, for its step; filled in as training calls begin.
  std::shared_ptr<trained_data> data = std::make_shared<trained_data>();
  /// Of this process: gets what its stages and its peer copy store hold; null: nobody asks for it.
  std::shared_ptr<latest_copies> latest;
  /// Unique to this job; written to its snapshots.
  std::string job_id;
  /// Compared between all processes before each call.
  agreement::job_description description;

  /// Sets the plan, and what follows from it in a world of `world_size` processes. `of_stage` [number of
  /// stages]: whether the replicas' parts of a stage are equal; empty: none are. `is_sharded`: the replicas
  /// own shards of all stages, and what else is in their parts is equal.
  void place(plan made, int world_size, const std::vector<layout::replica_content>& of_stage = {},
             bool is_sharded = false);
  /// The part of one of the job's cells, or the shard that it owns.
  const layout::job_part& part_of(const layout::cell& wanted) const;
  /// The replicas' parts of the last stage are equal: each holds the metrics of all replicas.
  bool shares_metrics() const;
};

}  // namespace troupe::actors::job
