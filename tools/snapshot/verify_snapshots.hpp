#pragma once
#include "snapshot/snapshot_query.hpp"

namespace troupe {

/// Reads every part of the given snapshots and prints each problem. Returns the exit code: 1 if the newest
/// finished snapshot is bad, if none is finished, or if the snapshot given by its step is not valid.
int verify_snapshots(const snapshot_query& query);

}  // namespace troupe
