#pragma once
#include <spdlog/logger.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/config/job_options.hpp"
#include "troupe/files/folder_lock.hpp"
#include "troupe/snapshot/manifest.hpp"
#include "troupe/snapshot/snapshot_access.hpp"

namespace troupe::actors::job {
struct job_definition;
}  // namespace troupe::actors::job

namespace troupe::actors::process {
class process;
}  // namespace troupe::actors::process

namespace troupe::detail {

/// How a job starts, as decided by rank 0. Not installed.
struct job_start {
  std::optional<snapshot::snapshot_manifest>
      resume_from;       ///< the snapshot to resume from; none: start from the initial weights
  bool is_first = true;  ///< false in a process that replaces a lost one
  /// Steps of the snapshot from which the job resumed, known to every process; none: from no snapshot.
  std::optional<std::uint64_t> resumed_step = {};
  bool trained_before = false;  ///< an earlier process of this rank knew that trained state was safe
  /// Of the folder with snapshots, if there is one: to be kept until the job ends.
  std::optional<files::folder_lock> lock = {};
};

/// Every process calls this before its first step; the first call waits for all processes. Each process
/// checks that it can write to its folders, and rank 0 selects the snapshot to resume from and reads it
/// completely. No two jobs may write to one folder at a time. If a check fails, every process throws
/// bad_input, rank 0 with the reason; nothing is deleted. `incarnation` counts the restarts of this rank,
/// `trainer` the earlier Trainers of this World.
job_start agree_on_start(actors::process::process& self, std::uint32_t incarnation, std::uint32_t trainer,
                         const job_options& options, const actors::job::job_definition& job,
                         spdlog::logger& log);

/// Whether the file that rank 0 has made, of the name that is the value of `marker_key`, is in `folder`, for
/// which it looks for 10 s; true if it has made none. A process that replaces a lost rank 0 makes another
/// one. The verdict comes when all have looked, and the file is removed: a process that replaces a lost one
/// of a job that has begun finds the verdict, and does not wait for the file.
bool shares_folder(collective::store& keys, const std::string& marker_key, const std::string& verdict_key,
                   const std::filesystem::path& folder);

/// The options for Trainer number `trainer` (from 0) of a World: each Trainer has its own snapshot folder.
job_options options_for_trainer(job_options options, std::uint32_t trainer);

/// Called by rank 0 when the state after a step is safe for the first time: from then on, the loss of all
/// copies loses what was promised. Before, a job begins again at its initial weights.
void record_safe_state(actors::process::process& self, std::uint32_t trainer);

/// Selects, on rank 0, the snapshot that a job with these options resumes from, and warns of what differs
/// from the job that wrote it. Renames (sets aside) damaged snapshots newer than the selected one, and all
/// snapshots if `fresh_start` is set.
///
/// Throws bad_input if
/// - a job with --resume finds no usable snapshot (the message names each one with the reason)
/// - a job with --resume finds one of another job or, without --reset-optimizer, of another optimizer
/// - a job without --resume finds any snapshot
std::optional<snapshot::snapshot_manifest> choose_snapshot(const job_options& options,
                                                           const actors::job::job_definition& job,
                                                           spdlog::logger& log);

/// Creates the folders that this process writes to and writes a test file there. Throws bad_input if that
/// fails.
void check_folders_writable(const job_options& options);

snapshot::snapshot_access snapshot_access_of(const job_options& options);

}  // namespace troupe::detail
