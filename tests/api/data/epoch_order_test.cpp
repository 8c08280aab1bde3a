#include "troupe/data/epoch_order.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <set>
#include <stdexcept>

#include "troupe/data/distributed_sampler.hpp"
#include "troupe/data/sampler.hpp"
#include "troupe/random/permutation.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;

namespace {

std::vector<std::int64_t> order_of(const epoch_order_options& options, std::uint64_t epoch) {
  epoch_order order(options);
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < order.size(); ++i) all.push_back(order.at(epoch, i));
  return all;
}

/// The shards of a sequence of samples, without repetitions.
std::vector<int> shards_in(const std::vector<std::int64_t>& samples, std::int64_t shard_size) {
  std::vector<int> shards;
  for (auto sample : samples)
    if (auto shard = static_cast<int>(sample / shard_size); std::ranges::find(shards, shard) == shards.end())
      shards.push_back(shard);
  return shards;
}

}  // namespace

TEST_CASE("a data set that is no stream is permuted as a whole, or comes in the order of its indices") {
  CHECK(order_of({.num_samples = 100, .seed = 4}, 3) == permutation(100, 4, 3));
  auto plain = order_of({.num_samples = 100, .shuffle = false}, 3);
  CHECK(std::ranges::is_sorted(plain));
}

TEST_CASE("a stream holds each sample once, in another order in each epoch and for each seed") {
  for (std::int64_t buffer : {1, 2, 7, 30, 1000}) {
    CAPTURE(buffer);
    stream_layout layout{{20, 0, 13, 1, 40}, buffer};
    auto first = order_of({.num_samples = 74, .seed = 4, .layout = layout}, 0);
    CHECK(std::set<std::int64_t>(first.begin(), first.end()).size() == 74);
    CHECK(*std::ranges::max_element(first) == 73);
    CHECK(first == order_of({.num_samples = 74, .seed = 4, .layout = layout}, 0));
    CHECK(first != order_of({.num_samples = 74, .seed = 4, .layout = layout}, 1));
    CHECK(first != order_of({.num_samples = 74, .seed = 5, .layout = layout}, 0));
  }
}

TEST_CASE("a stream that is not shuffled comes in the order of its files") {
  auto order = order_of({.num_samples = 60, .shuffle = false, .layout = {{20, 40}, 10}}, 2);
  CHECK(std::ranges::is_sorted(order));
}

TEST_CASE("a stream is read shard after shard, and no sample moves further than the shuffle buffer") {
  constexpr std::int64_t shard_size = 100, buffer = 16;
  stream_layout layout{std::vector<std::int64_t>(10, shard_size), buffer};
  auto order = order_of({.num_samples = 1000, .seed = 4, .layout = layout}, 0);
  auto unshuffled = order_of({.num_samples = 1000, .seed = 4, .layout = {layout.shard_sizes, 1}}, 0);
  CHECK(shards_in(order, shard_size) == shards_in(unshuffled, shard_size));
  CHECK(order != unshuffled);
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto was = std::ranges::find(unshuffled, order[i]) - unshuffled.begin();
    CHECK(std::abs(was - static_cast<std::ptrdiff_t>(i)) < buffer);
  }
}

TEST_CASE("any position of a stream is found without those before it") {
  epoch_order_options options{
      .num_samples = 74, .seed = 4, .layout = {.shard_sizes = {20, 13, 1, 40}, .shuffle_buffer = 9}};
  auto expected = order_of(options, 5);
  for (std::int64_t position : {73, 0, 40, 41, 8, 9, 10}) {
    epoch_order order(options);
    CHECK(order.at(5, position) == expected[static_cast<std::size_t>(position)]);
  }
}

TEST_CASE("replicas that do not divide the shards share a stream without gaps or repeats") {
  std::vector<std::int64_t> shard_sizes{20, 13, 1, 40, 23};
  for (int num_replicas : {1, 2, 3, 5, 8})
    for (auto tail : {shard_tail::pad, shard_tail::drop, shard_tail::uneven}) {
      CAPTURE(num_replicas, tail);
      std::multiset<std::int64_t> seen;
      std::int64_t largest = 0, smallest = 97;
      for (int replica = 0; replica < num_replicas; ++replica) {
        DistributedSampler sampler({.num_samples = 97,
                                    .num_replicas = num_replicas,
                                    .replica = replica,
                                    .tail = tail,
                                    .layout = {shard_sizes, 6}});
        sampler.set_epoch(2);
        auto own = sampler.indices();
        seen.insert(own.begin(), own.end());
        largest = std::max(largest, sampler.size());
        smallest = std::min(smallest, sampler.size());
      }
      auto distinct = static_cast<std::int64_t>(std::set<std::int64_t>(seen.begin(), seen.end()).size());
      auto total = static_cast<std::int64_t>(seen.size());
      CHECK(largest - smallest <= (tail == shard_tail::uneven ? 1 : 0));
      if (tail == shard_tail::drop)
        CHECK((distinct == total && total == 97 / num_replicas * num_replicas));
      else
        CHECK(distinct == 97);
      CHECK(total - distinct < (tail == shard_tail::pad ? num_replicas : 1));
    }
}

TEST_CASE("the parts of a stream that replicas read are whole shards but for the borders") {
  stream_layout layout{std::vector<std::int64_t>(10, 100), 16};
  std::size_t num_shards = 0;
  for (int replica = 0; replica < 4; ++replica) {
    DistributedSampler sampler(
        {.num_samples = 1000, .num_replicas = 4, .replica = replica, .layout = layout});
    num_shards += shards_in(sampler.indices(), 100).size();
  }
  CHECK(num_shards == 10 + 2);  // the second and the eighth shard are shared: 250 samples for each replica
}

TEST_CASE("the batches of a sampler over a stream hold each sample once") {
  sampler_options options{.num_samples = 96, .batch = 8, .seed = 3, .layout = {{50, 46}, 10}};
  std::set<std::int64_t> seen;
  sampler batches(options);
  for (std::uint64_t step = 12; step < 24; ++step)
    for (auto index : batches.indices(step)) seen.insert(index);
  CHECK(seen.size() == 96);
  CHECK(batches.indices(5) == batch_indices(options, 5));
}

TEST_CASE("each block of a stream is said to be read soon before its first sample, and once") {
  epoch_order order({.num_samples = 1000, .layout = {.shard_sizes = {300, 1, 699}, .shuffle_buffer = 50}});
  std::multiset<std::int64_t> read_soon;
  for (std::int64_t i = 0; i < 1000; ++i) {
    auto index = order.at(0, i);
    for (auto range : order.take_read_soon())
      for (std::int64_t in = 0; in < range.count; ++in) read_soon.insert(range.first + in);
    CHECK(read_soon.count(index) == 1);
    CHECK(read_soon.size() - static_cast<std::size_t>(i) <= 100);  // this block and the next
  }
  CHECK(read_soon.size() == 1000);
}

TEST_CASE("a hint that fails changes nothing") {
  class : public sample_reader {
   public:
    const shape& sample_extents() const override { return extents_; }
    labelled_samples read(std::span<const std::int64_t>) override { return {}; }
    void will_read(std::int64_t, std::int64_t) override { throw std::runtime_error("the tape is torn"); }

   private:
    shape extents_{100};
  } reader;
  sampler batches({.num_samples = 100, .batch = 10, .layout = {.shard_sizes = {100}, .shuffle_buffer = 9}});
  CHECK(batches.indices(3, &reader) == batches.indices(3));
}

TEST_CASE("an order of one's own that throws or has another size leaves the epoch to be begun again") {
  int num_calls = 0;
  epoch_order order({.num_samples = 3, .order = [&](std::uint64_t epoch) {
                       if (epoch == 1) throw std::runtime_error("no weights yet");
                       ++num_calls;
                       return std::vector<std::int64_t>(epoch == 2 ? 1 : 3, static_cast<std::int64_t>(epoch));
                     }});
  CHECK(order.at(0, 2) == 0);
  CHECK_THROWS_AS(order.at(2, 0), std::invalid_argument);
  CHECK(order.at(0, 2) == 0);
  CHECK_THROWS_AS(order.at(1, 0), std::runtime_error);
  CHECK(order.at(0, 2) == 0);
  CHECK(order.at(std::numeric_limits<std::uint64_t>::max(), 2) == -1);
  CHECK(num_calls == 5);
}

TEST_CASE("more samples than can be permuted are refused, with what to do") {
  constexpr std::int64_t many = std::int64_t{1} << 32;
  CHECK_THROWS_WITH(epoch_order({.num_samples = many}), ContainsSubstring("use a stream_dataset"));
  CHECK_THROWS_AS(
      epoch_order({.num_samples = many, .layout = {.shard_sizes = {many}, .shuffle_buffer = many}}),
      std::invalid_argument);
  CHECK_NOTHROW(epoch_order({.num_samples = many, .shuffle = false}));
  CHECK_NOTHROW(epoch_order({.num_samples = many, .layout = {.shard_sizes = {many}, .shuffle_buffer = 9}}));
}
