#pragma once
#include "snapshot/snapshot_query.hpp"

namespace troupe {

/// Reads every part of every snapshot asked for and prints each problem. Returns the exit code: 1 if the
/// newest that was finished is bad, if none was finished, or if the one asked for by its step is not whole.
int verify_snapshots(const snapshot_query& query);

}  // namespace troupe
