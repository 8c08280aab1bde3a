#pragma once
#include <cstdint>
#include <vector>

#include "troupe/data/epoch_order.hpp"

namespace troupe {

/// What happens if the number of replicas does not divide the number of samples.
/// - `pad`: some replicas get a sample a second time, so that all shards have one size.
/// - `drop`: the last samples of the order are omitted.
/// - `uneven`: the first replicas get one sample more, so that each sample is used exactly once.
///
/// Use `uneven` only for evaluation: in training all replicas need the same number of steps.
enum class shard_tail : std::uint8_t { pad, drop, uneven };

struct distributed_sampler_options {
  std::int64_t num_samples = 0;
  int num_replicas = 1;
  /// The index of the replica, in [0, num_replicas).
  int replica = 0;
  std::uint64_t seed = 1;
  shard_tail tail = shard_tail::pad;
  /// Shuffle in each epoch (the order of data/epoch_order.hpp); otherwise use the order of the data set.
  bool shuffle = true;
  /// Of a data set that is a stream.
  stream_layout layout = {};
  /// Replaces the order of seed, shuffle and layout if it is not empty; must return num_samples indices.
  order_function order = {};
};

/// The samples of one replica (PyTorch's DistributedSampler): elements replica, replica + num_replicas, ...
/// of an epoch's order. All shards have one size unless they are uneven; without padding no sample is in two
/// shards. If every replica takes its next b samples, together they take the same samples as a sampler with a
/// batch of num_replicas * b.
///
/// Of a stream, replicas take parts that follow each other and are equally long, so that each process reads
/// its own files. Where the replicas do not divide the files, two of them read parts of one.
///
/// Not thread-safe.
class DistributedSampler {
 public:
  /// Throws std::invalid_argument for numbers out of their range.
  explicit DistributedSampler(const distributed_sampler_options& options);

  /// Begins an epoch, from its first sample.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const { return epoch_; }
  /// Leaves out the first samples of this epoch that all replicas together have taken; they may have been
  /// another number of replicas then, but not in a stream. Throws std::invalid_argument for fewer than 0 and
  /// for more than an epoch has.
  void skip(std::int64_t num_samples);
  /// The number of samples in this replica's shard, without those that were skipped.
  std::int64_t size() const { return size_; }
  /// The sample indices of this replica in this epoch, in order: a pure function of options, epoch and what
  /// was skipped.
  std::vector<std::int64_t> indices() { return indices(0, size_); }
  /// Elements [first, first + count) of these.
  std::vector<std::int64_t> indices(std::int64_t first, std::int64_t count);
  /// See epoch_order::take_read_soon.
  std::vector<sample_range> take_read_soon() { return order_.take_read_soon(); }

 private:
  distributed_sampler_options options_;
  epoch_order order_;
  std::uint64_t epoch_ = 0;
  std::int64_t skipped_ = 0;  ///< of the order; in a stream of this replica's part
  std::int64_t size_;
};

}  // namespace troupe
