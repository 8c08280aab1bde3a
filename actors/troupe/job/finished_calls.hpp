#pragma once
#include <string>
#include <vector>

#include "troupe/job/call.hpp"

namespace troupe {

/// The results of a job's calls for the manifest of a snapshot, as hexadecimal digits. Processes that were
/// all lost make these calls again, and are told the same as the first time, which the snapshot's state alone
/// could not tell: it is of a later step. Timelines are left out.
std::string finished_calls_text(std::vector<call_result> results);

/// The reverse. Throws decode_error.
std::vector<call_result> finished_calls_from_text(const std::string& text);

}  // namespace troupe
