#pragma once
#include "snapshot/snapshot_query.hpp"

namespace troupe {

/// Prints one snapshot's manifest and every tensor with its statistics: the snapshot of the given step, or
/// the newest finished one. Returns the exit code. Throws snapshot_error if it cannot be read.
int show_snapshot(const snapshot_query& query);

}  // namespace troupe
