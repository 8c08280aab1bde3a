#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "inspect/inspector_address.hpp"
#include "inspect/job_snapshot.hpp"

namespace troupe {

/// Shows a running job on this terminal until the user or a signal ends it; and records it, unless `record`
/// is empty. A connection that drops, and a job that ends, are told of, and what was known stays. Returns the
/// exit code.
int watch_job(const inspector_address& address, const std::filesystem::path& record);

/// Records a job without a terminal until a signal, or until its inspector has not answered for 10 s. Returns
/// the exit code; throws http_failure or inspector_refusal if it never answers.
int record_job(const inspector_address& address, const std::filesystem::path& record);

/// Snapshots of a job that is over.
struct past_job {
  std::size_t size = 0;                               ///< above 0
  std::function<job_snapshot(std::size_t)> snapshot;  ///< returns one of them; the index is below `size`
  std::string note;                                   ///< what to tell of it; empty: nothing
  std::string what = "a record";                      ///< in place of a running job
};

/// Shows them on this terminal: left and right go to the snapshot before and after, space plays them. Returns
/// the exit code.
int replay_job(const past_job& past);

}  // namespace troupe
