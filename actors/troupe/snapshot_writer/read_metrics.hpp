#pragma once
#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe::actors::snapshot_writer {

/// The metrics of all replicas of a job in a snapshot whose parts are equal in them (replica_metrics_tensor).
/// Before format version 6 of the manifest, each replica's part of the last stage held its own. Throws
/// snapshot_error if a replica's are not there, or as stored_part does.
named_tensor read_metrics(const snapshot::snapshot_store& store, const snapshot::snapshot_manifest& manifest,
                          int num_replicas);

}  // namespace troupe::actors::snapshot_writer
