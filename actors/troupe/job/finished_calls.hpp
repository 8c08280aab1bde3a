#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "troupe/job/call_log.hpp"

namespace troupe::actors::job {

/// The result of a call as a block of a snapshot. A job that goes on from the snapshot repeats this call and
/// returns the stored result; it cannot be computed again from the snapshot's state, which is of a later
/// step. The timeline is left out. Throws std::out_of_range, system_failure.
std::vector<std::byte> block_of_call(const call_log& results, std::size_t index);

/// Appends a block's result to the log unless it is known. Throws decode_error for any other bytes, and for a
/// result that does not follow the known ones.
void add_call(std::span<const std::byte> block, call_log& to);

/// A job that resumes makes its program's calls from the first one on. As long as the calls are the same,
/// they return the results that they had in the job that wrote the snapshot (`recorded`).
struct repeated_calls {
  const call_log& recorded;
  const call_log& completed;  ///< results of this job's calls
  std::size_t first_call;     ///< index of the first call of this job
};
/// The recorded result of the job's next call, if that and all before it asked for what the recorded ones
/// did; none: it is to be computed. Barriers and calls that a process could not take part in (problem) have
/// the same result wherever they are made, and are computed again.
std::optional<call_result> result_to_repeat(const repeated_calls& calls, std::uint64_t request_hash);

}  // namespace troupe::actors::job
