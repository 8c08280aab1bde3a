#pragma once
#include <string>

#include "troupe/snapshot/manifest.hpp"

namespace troupe::snapshot {

/// Why processes of the numeric class `own` cannot continue from a snapshot with the bits of the job that
/// wrote it, and what to do; empty if they can.
std::string numeric_class_problem(const snapshot_manifest& manifest, const std::string& own);

}  // namespace troupe::snapshot
