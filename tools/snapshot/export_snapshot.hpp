#pragma once
#include "snapshot/snapshot_query.hpp"

namespace troupe {

/// Writes a snapshot's parameters, and with `optimizer` all its tensors, to a safetensors file. Returns the
/// exit code.
int export_snapshot(const snapshot_query& query);

}  // namespace troupe
