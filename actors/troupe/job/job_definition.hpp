#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/program/job_description.hpp"
#include "troupe/program/non_finite_policy.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/recovery/snapshot_cadence.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/snapshot/manifest.hpp"
#include "troupe/snapshot/snapshot_access.hpp"

namespace troupe {

/// When state copies are made and where they are stored.
struct snapshot_settings {
  /// memory_every_steps 0 here means: adapted so that copying takes at most 2 % of the time.
  snapshot_cadence cadence;
  std::filesystem::path folder;  ///< empty: memory only
  int keep = 2;                  ///< committed snapshots kept on disk
  snapshot_access access = snapshot_access::owner;
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
  program_factory make_program;
  plan training;
  int devices_per_rank = 1;
  int num_threads = 1;
  snapshot_settings snapshots;
  bool resume = false;
  non_finite_policy on_non_finite = non_finite_policy::stop;
  /// Rank 0 of a job that resumes: the snapshot to resume from; none: start from the initial weights.
  std::optional<snapshot_manifest> begin_with;
  /// Rank 0: an earlier incarnation of this process has trained this job.
  bool trained_before = false;
  lost_state_policy on_lost_state = lost_state_policy::stop;
  /// Options that the result's bits depend on. Written to every manifest; must equal a resumed snapshot's.
  std::vector<std::pair<std::string, std::string>> identity;
  /// Unique to this job; written to its snapshots.
  std::string job_id;
  /// Compared between all processes before each call.
  job_description description;

  int rank_of_device(int device) const { return device / devices_per_rank; }
  int rank_of_stage(int stage) const {
    return rank_of_device(training.device_of_stage[static_cast<std::size_t>(stage)]);
  }
  std::vector<int> ranks_of_stages() const;
};

}  // namespace troupe
