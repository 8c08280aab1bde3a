#pragma once
#include <cstdint>
#include <vector>

#include "troupe/data/dataset.hpp"

namespace troupe {

struct stream_options {
  /// Samples that are shuffled among themselves, see stream_layout.
  std::int64_t shuffle_buffer = 10'000;
  /// The maximum number of shards whose files are open at a time, >= 1; more only while more threads read
  /// other ones at once.
  int max_open_shards = 16;
};

/// The samples of several shards, each read from its first to its last, shard after shard, in another order
/// in each epoch (stream_layout): for data that a disk should deliver in sequence. Only parts are in memory.
/// If shuffle_buffer is not 1, files are read into the system's cache one shuffle buffer ahead.
///
/// The list of shards must be the same in all processes and when a job is resumed, in the same order: sort
/// what a folder lists. Positions and snapshots notice shards of other sizes or names.
///
/// Throws std::invalid_argument for no shards, null pointers and options out of their range. Throws bad_input
/// for shards whose samples differ in shape, and for ones that would be loaded whole at their first use.
/// Reading throws bad_input if they differ in dtype or labels.
dataset_ptr stream_dataset(std::vector<dataset_ptr> shards, const stream_options& options = {});

}  // namespace troupe
