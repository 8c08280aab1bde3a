#include "troupe/data/distributed_sampler.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <stdexcept>

#include "troupe/data/sampler.hpp"

using namespace troupe;

namespace {

/// How often each sample comes over all replicas; shards have the size that was announced.
std::map<std::int64_t, int> count_samples(distributed_sampler_options options, std::uint64_t epoch) {
  std::map<std::int64_t, int> counts;
  for (options.replica = 0; options.replica < options.num_replicas; ++options.replica) {
    DistributedSampler sampler(options);
    sampler.set_epoch(epoch);
    auto indices = sampler.indices();
    CHECK(static_cast<std::int64_t>(indices.size()) == sampler.size());
    for (auto index : indices) ++counts[index];
  }
  return counts;
}

}  // namespace

TEST_CASE("shards have neither gaps nor repeats, whatever the numbers of samples and replicas") {
  for (std::int64_t num_samples : {1, 2, 7, 64, 97, 101, 256})
    for (int num_replicas : {1, 2, 3, 4, 5, 7, 13})
      for (auto tail : {shard_tail::pad, shard_tail::drop, shard_tail::uneven})
        for (bool shuffle : {true, false}) {
          CAPTURE(num_samples, num_replicas, tail, shuffle);
          auto counts = count_samples({num_samples, num_replicas, 0, 3, tail, shuffle}, 2);
          std::int64_t num_drawn = 0;
          int most = 0;
          for (auto [index, count] : counts) {
            CHECK((index >= 0 && index < num_samples));
            num_drawn += count;
            most = std::max(most, count);
          }
          auto distinct = static_cast<std::int64_t>(counts.size());
          if (tail == shard_tail::drop) {
            CHECK(most <= 1);
            CHECK(distinct == num_samples / num_replicas * num_replicas);
          } else {
            CHECK(distinct == num_samples);
            CHECK(num_drawn - num_samples < (tail == shard_tail::pad ? num_replicas : 1));
          }
        }
}

TEST_CASE("in each step all replicas together take the samples of a sampler with the whole batch") {
  sampler_options whole{.num_samples = 103, .batch = 20, .seed = 9};
  for (std::uint64_t step : {0, 4, 7}) {
    auto epoch = step / steps_per_epoch(whole), in_epoch = step % steps_per_epoch(whole);
    std::multiset<std::int64_t> taken;
    for (int replica = 0; replica < 4; ++replica) {
      DistributedSampler sampler({.num_samples = 103, .num_replicas = 4, .replica = replica, .seed = 9});
      sampler.set_epoch(epoch);
      auto indices = sampler.indices();
      auto first = indices.begin() + static_cast<std::ptrdiff_t>(in_epoch * 5);
      taken.insert(first, first + 5);
    }
    auto expected = batch_indices(whole, step);
    CHECK(taken == std::multiset<std::int64_t>(expected.begin(), expected.end()));
  }
}

TEST_CASE("each epoch and seed has its own reproducible order") {
  DistributedSampler sampler({.num_samples = 50, .num_replicas = 2, .replica = 1});
  auto first = sampler.indices();
  sampler.set_epoch(1);
  CHECK(sampler.epoch() == 1);
  CHECK(sampler.indices() != first);
  sampler.set_epoch(0);
  CHECK(sampler.indices() == first);
  CHECK(DistributedSampler({.num_samples = 50, .num_replicas = 2, .replica = 1, .seed = 2}).indices() !=
        first);
}

TEST_CASE("a sampler with numbers out of range is refused") {
  CHECK_THROWS_AS(DistributedSampler({.num_samples = 0}), std::invalid_argument);
  CHECK_THROWS_AS(DistributedSampler({.num_samples = 5, .num_replicas = 0}), std::invalid_argument);
  CHECK_THROWS_AS(DistributedSampler({.num_samples = 5, .num_replicas = 2, .replica = 2}),
                  std::invalid_argument);
  CHECK_THROWS_AS(DistributedSampler({.num_samples = 5, .num_replicas = 2, .replica = -1}),
                  std::invalid_argument);
}

TEST_CASE("replicas of another number share the samples that are left of an epoch without gaps or repeats") {
  for (int before : {1, 2, 3, 4})
    for (int after : {1, 2, 3, 5}) {
      CAPTURE(before, after);
      std::multiset<std::int64_t> taken;
      for (int replica = 0; replica < before; ++replica) {
        DistributedSampler sampler({.num_samples = 101, .num_replicas = before, .replica = replica});
        sampler.set_epoch(3);
        for (auto index : sampler.indices(0, 8)) taken.insert(index);
      }
      for (int replica = 0; replica < after; ++replica) {
        DistributedSampler sampler(
            {.num_samples = 101, .num_replicas = after, .replica = replica, .tail = shard_tail::uneven});
        sampler.set_epoch(3);
        sampler.skip(8 * before);
        for (auto index : sampler.indices()) taken.insert(index);
      }
      CHECK(taken.size() == 101);
      CHECK(std::set<std::int64_t>(taken.begin(), taken.end()).size() == 101);
    }
}
