#pragma once
#include <vector>

#include "troupe/inspector/views/finding.hpp"
#include "troupe/inspector/views/job_view.hpp"

namespace troupe::actors::inspector {

/// Members that have not entered a collective call in which others wait: of each group, the call of the
/// highest number that a member is in. It is a finding when the wait is longer than a second and than three
/// times the longest of the group's newest calls.
std::vector<finding> missing_members(const job_view& view, std::int64_t now_ms);

}  // namespace troupe::actors::inspector
