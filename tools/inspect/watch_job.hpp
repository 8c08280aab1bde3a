#pragma once
#include <filesystem>

#include "inspect/inspector_address.hpp"
#include "inspect/job_record.hpp"

namespace troupe {

/// Shows a running job on this terminal until the user or a signal ends it; and records it, unless `record`
/// is empty. A connection that drops, and a job that ends, are told of, and what was known stays. Returns the
/// exit code.
int watch_job(const inspector_address& at, const std::filesystem::path& record);

/// Records a job without a terminal until a signal, or until its inspector has not answered for 10 s. Returns
/// the exit code; throws http_failure or inspector_refusal if it never answers.
int record_job(const inspector_address& at, const std::filesystem::path& record);

/// Shows a record on this terminal: left and right go to the snapshot before and after, space plays it.
/// Returns the exit code.
int replay_job(const job_record& record);

}  // namespace troupe
