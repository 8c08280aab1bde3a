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

/// When states are copied, and where copies go.
struct snapshot_settings {
  /// memory_every_steps 0 here means: as many as keep copying below 2 % of the time.
  snapshot_cadence cadence;
  std::filesystem::path folder;  ///< empty: memory only
  int keep = 2;                  ///< committed snapshots kept on disk
  snapshot_access access = snapshot_access::owner;
};

/// What a job does that has lost its state: processes that kept each other's copies were lost at once, and
/// there is none on disk.
enum class lost_state_policy : std::uint8_t { stop, restart };

/// One training job, the same in every process but for the memory behind the handles.
struct job_definition {
  /// Of the jobs that a process defines one after the other, from 0.
  std::uint32_t number = 0;
  /// The first call that may be about this job: those before it were about others.
  std::uint32_t first_call = 0;
  program_factory make_program;
  plan training;
  int devices_per_rank = 1;
  int num_threads = 1;
  snapshot_settings snapshots;
  bool resume = false;
  non_finite_policy on_non_finite = non_finite_policy::stop;
  /// Rank 0: the snapshot that a job that resumes goes on from; none: from the initial weights.
  std::optional<snapshot_manifest> begin_with;
  /// Rank 0: earlier processes of this rank have done steps.
  bool trained_before = false;
  lost_state_policy on_lost_state = lost_state_policy::stop;
  /// Options the bits depend on; stands in every manifest, and a resumed snapshot's must be equal.
  std::vector<std::pair<std::string, std::string>> identity;
  /// Of this job and no other; stands in its snapshots.
  std::string job_id;
  /// What all processes compare before a call is begun.
  job_description description;

  int rank_of_device(int device) const { return device / devices_per_rank; }
  int rank_of_stage(int stage) const {
    return rank_of_device(training.device_of_stage[static_cast<std::size_t>(stage)]);
  }
  std::vector<int> ranks_of_stages() const;
};

}  // namespace troupe
