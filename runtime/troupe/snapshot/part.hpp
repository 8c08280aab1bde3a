#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// One stage's state after `step` optimizer steps: all that is needed to go on from there.
struct snapshot_part {
  std::string job_id;
  std::uint64_t step = 0;        ///< optimizer steps applied
  std::uint32_t stage = 0;
  std::uint32_t num_stages = 1;
  std::uint64_t generation = 0;  ///< that made it
  std::string numeric_class;
  std::vector<named_tensor> tensors;
};

/// The part as bytes: magic, format version, length, Cereal header, raw elements, checksum. The same bytes
/// go to disk and to a peer's memory. Returned as a u8 tensor [num_bytes].
tensor encode_part(const snapshot_part& part);

/// Throws snapshot_error naming what is wrong (not a part, other version, truncated, checksum). No length read from `bytes`
/// is believed before it is checked against their number. The tensors own their elements.
snapshot_part decode_part(std::span<const std::byte> bytes);

}  // namespace troupe
