#pragma once
#include <cstdint>
#include <vector>

#include "troupe/data/dataset.hpp"

namespace troupe {

/// What happens when the replicas do not divide the samples: `pad` gives some replicas a sample from the
/// beginning of the order, so that all samples come and shards are equal; `drop` leaves the last ones of the
/// epoch's order out; `uneven` gives the first replicas one more, so that each sample comes exactly once: for
/// evaluation, since a step that all replicas take together must exist for all.
enum class shard_tail : std::uint8_t { pad, drop, uneven };

struct distributed_sampler_options {
  std::int64_t num_samples = 0;
  int num_replicas = 1;
  /// Whose shard, in [0, num_replicas).
  int replica = 0;
  std::uint64_t seed = 1;
  shard_tail tail = shard_tail::pad;
  /// An order of its own for each epoch: the one of data/sampler.hpp. Otherwise that of the data set.
  bool shuffle = true;
};

/// The samples of one replica: element replica, replica + num_replicas, ... of an epoch's order. Shards of an
/// epoch have one size unless they are uneven; without padding no sample is in two. So a step in which every
/// replica takes the next b of its samples takes, over all of them, what a sampler with a batch of
/// num_replicas * b takes.
class DistributedSampler {
 public:
  /// Throws std::invalid_argument for numbers out of their range.
  explicit DistributedSampler(const distributed_sampler_options& options);

  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }
  std::uint64_t epoch() const { return epoch_; }
  /// Of this replica's shard; of every one's unless they are uneven.
  std::int64_t size() const { return size_; }
  /// Of this epoch, in order: a pure function of options and epoch.
  std::vector<std::int64_t> indices() const;

 private:
  distributed_sampler_options options_;
  std::int64_t size_;
  std::uint64_t epoch_ = 0;
};

struct sharded_loader_options {
  /// Samples of this replica in a batch, >= 1.
  std::int64_t batch = 1;
  /// Leaves a last, smaller batch out. False: it comes too, and a step over it counts fewer samples.
  bool drop_last = true;
};

/// Batches of one replica's shard of a data set.
class ShardedLoader {
 public:
  /// Throws std::invalid_argument if the sampler is for another number of samples, or a shard makes no batch.
  ShardedLoader(dataset_ptr samples, const distributed_sampler_options& shard,
                sharded_loader_options options);

  void set_epoch(std::uint64_t epoch);
  /// In an epoch, for every replica whose shard has this size.
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
