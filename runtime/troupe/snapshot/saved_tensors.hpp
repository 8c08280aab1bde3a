#pragma once
#include <string>
#include <vector>

#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe::snapshot {

/// A selection of a snapshot's tensors. weights: parameters and buffers. all: also the optimizer's state
/// ("<parameter>/<what>").
enum class saved_part : std::uint8_t { weights, all };

/// Whether a stage's state names a parameter or buffer so: false for the optimizer's state and for tensors of
/// the runtime.
bool is_weight_name(const std::string& name);

/// The tensors of all parts, whole and in name order. One that several stages hold is listed once. Throws
/// snapshot_error as stored_part does, and if the copies of such a tensor differ.
std::vector<named_tensor> saved_tensors(const snapshot_store& store, const snapshot_manifest& manifest,
                                        saved_part which);

}  // namespace troupe::snapshot
