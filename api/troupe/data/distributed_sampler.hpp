#pragma once
#include <cstdint>
#include <vector>

#include "troupe/data/dataset.hpp"

namespace troupe {

/// What happens if the number of replicas does not divide the number of samples. `pad` gives some replicas a
/// sample from the beginning of the order a second time, so that all shards have one size; `drop` omits the
/// last samples of the order; `uneven` gives the first replicas one sample more, so that each sample is used
/// exactly once. Use `uneven` only for evaluation: in training all replicas need the same number of steps.
enum class shard_tail : std::uint8_t { pad, drop, uneven };

struct distributed_sampler_options {
  std::int64_t num_samples = 0;
  int num_replicas = 1;
  /// The index of the replica, in [0, num_replicas).
  int replica = 0;
  std::uint64_t seed = 1;
  shard_tail tail = shard_tail::pad;
  /// Shuffle in each epoch (the order of data/sampler.hpp); otherwise use the order of the data set.
  bool shuffle = true;
};

/// The samples of one replica (PyTorch's DistributedSampler): elements replica, replica + num_replicas, ...
/// of an epoch's order. All shards have one size unless they are uneven; without padding no sample is in two
/// shards. If every replica takes its next b samples, together they take the same samples as a sampler with a
/// batch of num_replicas * b.
class DistributedSampler {
 public:
  /// Throws std::invalid_argument for numbers out of their range.
  explicit DistributedSampler(const distributed_sampler_options& options);

  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }
  std::uint64_t epoch() const { return epoch_; }
  /// The number of samples in this replica's shard.
  std::int64_t size() const { return size_; }
  /// The sample indices of this replica in this epoch, in order: a pure function of options and epoch.
  std::vector<std::int64_t> indices() const;

 private:
  distributed_sampler_options options_;
  std::int64_t size_;
  std::uint64_t epoch_ = 0;
};

struct sharded_loader_options {
  /// Samples per batch of this replica, >= 1.
  std::int64_t batch = 1;
  /// Omit a last, smaller batch. False: the last batch may be smaller than the others.
  bool drop_last = true;
};

/// Batches of one replica's shard of a data set.
class ShardedLoader {
 public:
  /// Throws std::invalid_argument if the options are for another number of samples, or a shard has no
  /// complete batch.
  ShardedLoader(dataset_ptr samples, const distributed_sampler_options& shard,
                sharded_loader_options options);

  void set_epoch(std::uint64_t epoch);
  /// Batches per epoch.
  std::int64_t num_batches() const { return num_batches_; }
  /// Batch `index` of this epoch; throws std::out_of_range beyond num_batches().
  labelled_samples batch(std::int64_t index) const;

 private:
  dataset_ptr samples_;
  DistributedSampler sampler_;
  std::int64_t batch_, num_batches_;
  std::vector<std::int64_t> order_;
};

}  // namespace troupe
