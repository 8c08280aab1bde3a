#include "troupe/data/distributed_sampler.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "troupe/error/errors.hpp"
#include "troupe/ops/rows.hpp"
#include "troupe/random/permutation.hpp"

namespace troupe {
namespace {

std::int64_t shard_size(const distributed_sampler_options& options) {
  if (options.num_samples < 1)
    throw_invalid("DistributedSampler", "at least one sample", std::to_string(options.num_samples));
  if (options.num_replicas < 1)
    throw_invalid("DistributedSampler", "at least one replica", std::to_string(options.num_replicas));
  if (options.replica < 0 || options.replica >= options.num_replicas)
    throw_invalid("DistributedSampler", "a replica in [0, " + std::to_string(options.num_replicas) + ")",
                  std::to_string(options.replica));
  auto whole = options.num_samples / options.num_replicas;
  auto left = options.num_samples % options.num_replicas;
  bool has_one_more = options.tail == shard_tail::pad ? left > 0 : options.replica < left;
  return options.tail != shard_tail::drop && has_one_more ? whole + 1 : whole;
}

}  // namespace

DistributedSampler::DistributedSampler(const distributed_sampler_options& options)
    : options_(options), size_(shard_size(options)) {}

std::vector<std::int64_t> DistributedSampler::indices() const {
  std::vector<std::int64_t> order;
  if (options_.shuffle) {
    order = permutation(options_.num_samples, options_.seed, epoch_);
  } else {
    order.resize(static_cast<std::size_t>(options_.num_samples));
    std::iota(order.begin(), order.end(), 0);
  }
  std::vector<std::int64_t> shard;
  for (std::int64_t i = 0; i < size_; ++i) {
    auto at = i * options_.num_replicas + options_.replica;
    shard.push_back(order[static_cast<std::size_t>(at % options_.num_samples)]);
  }
  return shard;
}

ShardedLoader::ShardedLoader(dataset_ptr samples, const distributed_sampler_options& shard,
                             sharded_loader_options options)
    : samples_(std::move(samples)), sampler_(shard), batch_(options.batch), order_(sampler_.indices()) {
  if (samples_->num_samples() != shard.num_samples)
    throw_invalid("ShardedLoader",
                  "num_samples to be that of the data set, " + std::to_string(samples_->num_samples()),
                  std::to_string(shard.num_samples));
  if (batch_ < 1) throw_invalid("ShardedLoader", "a batch of at least one sample", std::to_string(batch_));
  num_batches_ = (sampler_.size() + (options.drop_last ? 0 : batch_ - 1)) / batch_;
  if (options.drop_last && num_batches_ == 0)
    throw_invalid("ShardedLoader",
                  "a batch of at most a shard, " + std::to_string(sampler_.size()) + ", or drop_last = false",
                  std::to_string(batch_));
}

void ShardedLoader::set_epoch(std::uint64_t epoch) {
  sampler_.set_epoch(epoch);
  order_ = sampler_.indices();
}

labelled_samples ShardedLoader::batch(std::int64_t index) const {
  if (index < 0 || index >= num_batches())
    throw std::out_of_range("[ShardedLoader] expected a batch in [0, " + std::to_string(num_batches()) +
                            "), got " + std::to_string(index));
  auto size = std::min(batch_, sampler_.size() - index * batch_);
  auto first = order_.begin() + static_cast<std::ptrdiff_t>(index * batch_);
  auto rows = tensor::from(std::vector<std::int64_t>(first, first + size), {size});
  return {gather_rows(samples_->samples(), rows), gather_rows(samples_->labels(), rows)};
}

}  // namespace troupe
