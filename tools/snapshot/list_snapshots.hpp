#pragma once
#include "snapshot/snapshot_query.hpp"

namespace troupe {

/// Prints the snapshots in the folder, newest first. Reads only manifests and file sizes. Returns the exit
/// code.
int list_snapshots(const snapshot_query& query);

}  // namespace troupe
