#pragma once
#include "snapshot/snapshot_query.hpp"

namespace troupe {

/// Prints what stands in the folder, newest first; looks at manifests and file sizes only. Returns the exit
/// code.
int list_snapshots(const snapshot_query& query);

}  // namespace troupe
