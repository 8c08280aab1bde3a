#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "troupe/data/dataset.hpp"
#include "troupe/program/batch_source.hpp"

namespace troupe::detail {

struct training_source_options {
  /// Global batch in samples.
  std::int64_t batch = 256;
  /// Number of equal microbatches per batch; must divide `batch`.
  int microbatches = 8;
  /// Seed of the order of the samples.
  std::uint64_t seed = 1;
  /// Batches that are returned together: batch i of the source is batches i * flush_every to (i + 1) *
  /// flush_every - 1 of the sampler, one behind the other, also where an epoch ends between them.
  int flush_every = 1;
  /// Each takes `microbatches` of a batch.
  int replicas = 1;
  /// Which batch of the data set a batch of the source is, where the job trains on other data too. Called
  /// from any thread. Empty: the same.
  std::function<std::uint64_t(std::uint64_t step)> position = {};
};

/// Creates a source of batches in the sampler's order (data/sampler.hpp). The first batch loads the data set;
/// request it early on the loader's thread to take that off the critical path. The source may be called from
/// any thread. Throws bad_input if the replicas' microbatches do not divide the batch or there is no complete
/// batch.
std::unique_ptr<batch_source> make_training_source(dataset_ptr samples,
                                                   const training_source_options& options);

}  // namespace troupe::detail
