#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "troupe/job/call_log.hpp"

namespace troupe {

/// The result of a call as a block of a snapshot. A job that goes on from the snapshot repeats this call and
/// returns the stored result; it cannot be computed again from the snapshot's state, which is of a later
/// step. The timeline is left out. Throws std::out_of_range, system_failure.
std::vector<std::byte> block_of_call(const call_log& results, std::size_t index);

/// Appends a block's result to the log unless it is known. Throws decode_error for any other bytes, and for a
/// result that does not follow the known ones.
void add_call(std::span<const std::byte> block, call_log& to);

}  // namespace troupe
