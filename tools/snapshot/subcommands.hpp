#pragma once

#include "snapshot/snapshot_query.hpp"

namespace troupe {

/// Prints the snapshots in the folder, newest first. Reads only manifests and file sizes. Returns the exit
/// code.
int list_snapshots(const snapshot_query& query);

/// Prints one snapshot's manifest and every tensor with its statistics: the snapshot of the given step, or
/// the newest finished one. Returns the exit code. Throws snapshot_error if it cannot be read.
int show_snapshot(const snapshot_query& query);

/// Reads every part of the given snapshots and prints each problem. Returns the exit code: 1 if the newest
/// finished snapshot is bad, if none is finished, or if the snapshot given by its step is not valid.
int verify_snapshots(const snapshot_query& query);

/// Writes a snapshot's parameters, and with `optimizer` all its tensors, to a safetensors file, or to several
/// and their index. Returns the exit code.
int export_snapshot(const snapshot_query& query);

}  // namespace troupe
