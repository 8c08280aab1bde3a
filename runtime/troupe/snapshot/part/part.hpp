#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/contents/tensor_contents.hpp"
#include "troupe/layout/part_id.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::snapshot {

/// The state of one part after `step` optimizer steps: all that is needed to continue from there.
struct snapshot_part {
  std::string job_id;
  std::uint64_t step = 0;  ///< optimizer steps applied
  layout::part_id part;
  std::uint32_t num_stages = 1;
  std::uint64_t generation = 0;  ///< the generation that computed it
  std::string numeric_class;
  std::vector<named_tensor> tensors;
  /// [number of tensors], which of their elements these are, in stored_shape. Empty: all.
  std::vector<tensor_contents> contents = {};
};

/// The part as bytes. The same bytes go to disk and to a peer's memory. Returned as a u8 tensor [num_bytes].
/// Throws std::invalid_argument for an undefined tensor, a name that occurs twice, and contents that are not
/// those of the tensors. part_reader reads them.
///
/// All numbers are little-endian; padding is zero:
///
///     offset  bytes  what
///          0      8  "TROUPEPT"
///          8      4  format version, 3
///         12      4  zero
///         16      8  header_bytes
///         24      8  elements_bytes, a multiple of 64
///         32         Cereal header [header_bytes]: job, step, part_id, number of stages, generation,
///         contents; padded to 64. In version 1: stage instead of part_id, names, dtypes and shapes of whole
///         tensors
///                    elements [elements_bytes] of each tensor in turn, each padded to 64
///                    BLAKE2b-256 of each 64 MiB of the elements, and of the rest; not in versions 1 and 2
///       last     32  BLAKE2b-256 of all before the elements and all after them; in versions 1 and 2 of
///                    everything before
tensor encode_part(const snapshot_part& part);

}  // namespace troupe::snapshot
