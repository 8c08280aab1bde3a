#pragma once
#include <memory>

#include "troupe/data/dataset.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe {

struct training_source_options {
  /// Global batch in samples.
  std::int64_t batch = 256;
  /// How many equal microbatches a batch is cut into; must divide `batch`.
  int microbatches = 8;
  /// Of the order of the samples.
  std::uint64_t seed = 1;
};

/// Batches in the sampler's order (data/sampler.hpp). Reads the data set with the first batch, so asking for
/// one early from the loader's thread takes that off the critical path. Its calls may come from any thread.
/// Throws bad_input if the microbatches do not divide the batch or the samples make no whole batch.
std::unique_ptr<batch_source> make_training_source(dataset_ptr samples,
                                                   const training_source_options& options);

}  // namespace troupe
