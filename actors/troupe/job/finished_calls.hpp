#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "troupe/job/call_log.hpp"
#include "troupe/snapshot/block_file.hpp"

namespace troupe {

/// The results of a job's first `num_results` calls, as blocks for a snapshot. A job that resumes from the
/// snapshot repeats these calls and returns the stored results; they cannot be computed again from the
/// snapshot's state, which is of a later step. Timelines are left out.
block_source blocks_of_calls(std::shared_ptr<const call_log> results, std::size_t num_results);

/// Appends a block's results to the log, except known ones. Throws decode_error for any other bytes.
void add_calls(std::span<const std::byte> block, call_log& to);

}  // namespace troupe
