#pragma once
#include <cstdint>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Where a DataLoader is in its data: what a program saves beside its weights to go on at the exact sample.
/// The same for all replicas that have taken the same number of batches.
struct data_position {
  std::uint64_t epoch = 0;
  /// Of the epoch, by all replicas together.
  std::int64_t samples_done = 0;

  // What the position is one in, compared when it is resumed.
  std::int64_t samples_per_epoch = 0;
  std::uint64_t seed = 0;
  int num_replicas = 1;
  std::uint64_t order_hash =
      0;  ///< of shuffle, names of files, and a stream's shards, shuffle buffer and tail

  friend bool operator==(const data_position&, const data_position&) = default;

  /// i64 [8], to be saved with write_safetensors or sent to other processes.
  tensor to_tensor() const;
  /// Throws bad_input for a tensor that is no position, or one of another version.
  static data_position from_tensor(const tensor& value);
};

}  // namespace troupe
