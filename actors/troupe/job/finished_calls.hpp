#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "troupe/job/call_log.hpp"
#include "troupe/snapshot/block_file.hpp"

namespace troupe {

/// The results of a job's first `num_results` calls, as blocks for a snapshot. Processes that were all lost
/// make these calls again, and are told the same as the first time, which the snapshot's state alone could
/// not tell: it is of a later step. Timelines are left out.
block_source blocks_of_calls(std::shared_ptr<const call_log> results, std::size_t num_results);

/// Adds a block's results to the log, but for those it knows. Throws decode_error if it is no such block.
void add_calls(std::span<const std::byte> block, call_log& to);

}  // namespace troupe
