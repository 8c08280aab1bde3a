#pragma once
#include <spdlog/logger.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/config/job_options.hpp"
#include "troupe/node/node.hpp"
#include "troupe/snapshot/manifest.hpp"

namespace troupe {

/// What a job begins with, as rank 0 knows it; not installed.
struct job_start {
  std::optional<snapshot_manifest> begin_with;  ///< the snapshot to go on from; none: the initial weights
  bool is_first = true;                         ///< false in a process that takes a lost one's place
  bool trained_before = false;                  ///< earlier processes of this rank have done steps
};

using job_identity = std::vector<std::pair<std::string, std::string>>;

/// Made by every process before its first step, and waits for the others the first time: each tries the
/// folders it will write to, rank 0 looks for the snapshot to go on from and reads all of it. Where something
/// cannot be, every process throws bad_input; rank 0's says what, and nothing was deleted. `incarnation`: how
/// often this rank was started again; `trainer`: how many Trainers this World had before.
job_start agree_on_start(node& self, std::uint32_t incarnation, std::uint32_t trainer,
                         const job_options& options, const job_identity& identity, spdlog::logger& log);

/// What a World's options are for its Trainer `trainer`, from 0: each has a snapshot folder of its own.
job_options options_of_trainer(job_options options, std::uint32_t trainer);

/// Rank 0, when the first step is done: from now on losing everything loses work.
void note_training_began(node& self, std::uint32_t trainer);

/// Rank 0's part that needs no other process: the snapshot that a job with these options goes on from. Throws
/// bad_input naming each snapshot that cannot be used, with the reason, where a job that resumes finds no
/// other, and where a fresh one finds any. Sets aside damaged ones that are newer than the one it returns,
/// and all where `fresh_start` asks for it.
std::optional<snapshot_manifest> choose_snapshot(const job_options& options, const job_identity& identity,
                                                 spdlog::logger& log);

/// Creates the folders that this process writes to and writes a file there. Throws bad_input.
void try_folders(const job_options& options);

snapshot_access snapshot_access_of(const job_options& options);

}  // namespace troupe
