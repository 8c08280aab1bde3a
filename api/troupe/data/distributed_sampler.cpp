#include "troupe/data/distributed_sampler.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// The number of `count` samples that the replica gets.
std::int64_t shard_size(const distributed_sampler_options& options, std::int64_t count) {
  auto whole = count / options.num_replicas;
  auto left = count % options.num_replicas;
  bool has_one_more = options.tail == shard_tail::pad ? left > 0 : options.replica < left;
  return options.tail != shard_tail::drop && has_one_more ? whole + 1 : whole;
}

/// Whether replicas take parts of a stream that follow each other, instead of every n-th sample.
bool takes_parts(const distributed_sampler_options& options) {
  return options.layout.is_stream() && !options.order;
}

/// The order of which the replica's shard is taken: of a stream, the replica's part.
epoch_order_options order_options(const distributed_sampler_options& options) {
  if (options.num_samples < 1)
    throw_invalid("DistributedSampler", "at least one sample", std::to_string(options.num_samples));
  if (options.num_replicas < 1)
    throw_invalid("DistributedSampler", "at least one replica", std::to_string(options.num_replicas));
  if (options.replica < 0 || options.replica >= options.num_replicas)
    throw_invalid("DistributedSampler", "a replica in [0, " + std::to_string(options.num_replicas) + ")",
                  std::to_string(options.replica));
  epoch_order_options order{options.num_samples, options.seed, options.shuffle, options.layout};
  order.order = options.order;
  if (!takes_parts(options)) return order;
  auto whole = options.num_samples / options.num_replicas;
  auto left = options.tail == shard_tail::drop ? 0 : options.num_samples % options.num_replicas;
  order.begin = options.replica * whole + std::min<std::int64_t>(options.replica, left);
  order.end = order.begin + shard_size(options, options.num_samples);
  return order;
}

}  // namespace

DistributedSampler::DistributedSampler(const distributed_sampler_options& options)
    : options_(options), order_(order_options(options)), size_(shard_size(options, options.num_samples)) {}

void DistributedSampler::set_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  skip(0);
}

void DistributedSampler::skip(std::int64_t num_samples) {
  if (num_samples < 0 || num_samples > options_.num_samples)
    throw_invalid("DistributedSampler",
                  "a number of samples in [0, " + std::to_string(options_.num_samples) + "]",
                  std::to_string(num_samples));
  if (takes_parts(options_)) {
    auto whole = shard_size(options_, options_.num_samples);
    skipped_ = std::min((num_samples + options_.num_replicas - 1) / options_.num_replicas, whole);
    size_ = whole - skipped_;
  } else {
    skipped_ = num_samples;
    size_ = shard_size(options_, options_.num_samples - num_samples);
  }
}

std::vector<std::int64_t> DistributedSampler::indices(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> shard;
  for (auto i = first; i < first + count; ++i) {
    auto at = takes_parts(options_) ? i : i * options_.num_replicas + options_.replica;
    shard.push_back(order_.at(epoch_, (skipped_ + at) % order_.size()));
  }
  return shard;
}

}  // namespace troupe
