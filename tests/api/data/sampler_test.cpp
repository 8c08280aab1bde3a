#include "troupe/data/sampler.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "troupe/error/errors.hpp"

using troupe::batch_indices;
using troupe::sampler_options;

TEST_CASE("the last incomplete batch is dropped") {
  CHECK(troupe::steps_per_epoch({.num_samples = 60000, .batch = 256}) == 234);
  CHECK(troupe::steps_per_epoch({.num_samples = 256, .batch = 256}) == 1);
}

TEST_CASE("no sample occurs twice in an epoch, and every index is valid") {
  const sampler_options options{.num_samples = 103, .batch = 10, .seed = 5};
  for (std::uint64_t epoch : {0, 1, 7}) {
    std::set<std::int64_t> seen;
    for (std::uint64_t step = 0; step < 10; ++step)
      for (auto index : batch_indices(options, epoch * 10 + step)) CHECK(seen.insert(index).second);
    CHECK(seen.size() == 100);
    CHECK(*seen.begin() >= 0);
    CHECK(*seen.rbegin() < 103);
  }
}

TEST_CASE("an epoch of whole batches takes every sample") {
  const sampler_options options{.num_samples = 40, .batch = 8, .seed = 2};
  std::set<std::int64_t> seen;
  for (std::uint64_t step = 5; step < 10; ++step)
    std::ranges::copy(batch_indices(options, step), std::inserter(seen, seen.end()));
  CHECK(seen.size() == 40);
}

TEST_CASE("each seed and epoch has its own order") {
  const sampler_options options{.num_samples = 1000, .batch = 100, .seed = 1};
  auto other = options;
  other.seed = 2;
  CHECK(batch_indices(options, 0) != batch_indices(other, 0));
  CHECK(batch_indices(options, 0) != batch_indices(options, 10));
  CHECK(batch_indices(options, 0) != batch_indices(options, 1));
}

TEST_CASE("a sampler's result does not depend on the order of calls") {
  const sampler_options options{.num_samples = 50, .batch = 7, .seed = 3};
  troupe::sampler remembering(options);
  CHECK(remembering.num_steps_per_epoch() == 7);
  for (std::uint64_t step : {0, 20, 3, 3, 21, 6, 7, 0})
    CHECK(remembering.indices(step) == batch_indices(options, step));
}

TEST_CASE("samples that make no whole batch are refused with both numbers") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THROWS_WITH(troupe::steps_per_epoch({.num_samples = 100, .batch = 256}),
                    ContainsSubstring("256") && ContainsSubstring("100") && ContainsSubstring("--batch"));
  CHECK_THROWS_AS(troupe::sampler({.num_samples = 100, .batch = 0}), troupe::bad_input);
  CHECK_THROWS_AS(batch_indices({.num_samples = 0, .batch = 1}, 0), troupe::bad_input);
}
