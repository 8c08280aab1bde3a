#pragma once
#include <filesystem>

#include "inspect/job_snapshot.hpp"

namespace troupe {

/// What the lost processes of a job did last, in the form of a snapshot, from the files events-RANK.I.bin in
/// a folder of `troupe launch --log-dir`. It has a row of "actors" for each thread with its newest event, and
/// as the log the newest events of all. The snapshot's time is that of the newest event of all. Throws
/// bad_input if there is no such file, or one that is damaged or of another version.
job_snapshot snapshot_of_lost_processes(const std::filesystem::path& folder);

}  // namespace troupe
