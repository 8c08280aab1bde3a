#pragma once
#include <cstdint>
#include <vector>

#include "troupe/data/dataset.hpp"

namespace troupe {

struct stream_options {
  /// Samples that are shuffled among themselves, see stream_layout.
  std::int64_t shuffle_buffer = 10'000;
  /// The maximum number of shards whose files are open at a time.
  int max_open_shards = 16;
};

/// The samples of several shards, each read from its first to its last, shard after shard, in another order
/// in each epoch (stream_layout): for data that a disk should deliver in sequence. Only parts are in memory;
/// what the system caches of files is read ahead and dropped behind.
///
/// Throws std::invalid_argument for no shards and null pointers, and bad_input for shards whose samples
/// differ in shape; reading throws bad_input if they differ in dtype or labels.
dataset_ptr stream_dataset(std::vector<dataset_ptr> shards, const stream_options& options = {});

}  // namespace troupe
