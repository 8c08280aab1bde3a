#pragma once
#include <vector>

#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe {

/// Which of a snapshot's tensors: parameters and buffers, or what the optimizer keeps ("<parameter>/<what>")
/// too.
enum class saved_part : std::uint8_t { weights, all };

/// The tensors of all stages, in name order; what several stages hold alike, once. Throws snapshot_error as
/// read_part does, and for one that they do not hold alike.
std::vector<named_tensor> saved_tensors(const snapshot_store& store, const snapshot_manifest& manifest,
                                        saved_part which);

}  // namespace troupe
