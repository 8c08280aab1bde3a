#include "troupe/data/detail/evaluation_source.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "small_dataset.hpp"
#include "troupe/error/errors.hpp"

using troupe::testing::small_dataset;

TEST_CASE("evaluation takes every sample once, in order, in batches that cut into microbatches") {
  struct sizes {
    int samples, batch, microbatches, expected_microbatches;
    std::uint64_t expected_steps;
  };
  for (auto [samples, batch, microbatches, expected_microbatches, expected_steps] :
       {sizes{100, 25, 8, 5, 4}, sizes{64, 24, 8, 8, 3}, sizes{97, 20, 8, 1, 5}, sizes{16, 100, 4, 4, 1},
        sizes{10, 8, 3, 2, 2}}) {
    CAPTURE(samples, batch, microbatches);
    troupe::detail::evaluation_source source(small_dataset(samples), batch, microbatches);
    CHECK(source.num_microbatches() == expected_microbatches);
    CHECK(source.num_steps_per_epoch() == expected_steps);
    int next = 0;
    for (std::uint64_t step = 0; step < source.num_steps_per_epoch(); ++step) {
      auto got = source.at(step);
      auto rows = got.targets.num_elements();
      CHECK(rows <= batch);
      CHECK(rows % source.num_microbatches() == 0);
      REQUIRE(got.inputs.shape() == troupe::shape{rows, 2});
      for (auto label : got.targets.values<std::uint8_t>()) CHECK(label == next++);
    }
    CHECK(next == samples);
  }
}

TEST_CASE("evaluation starts again at the first batch after the last one") {
  troupe::detail::evaluation_source source(small_dataset(10), 4, 2);
  CHECK(source.at(source.num_steps_per_epoch()).targets.values<std::uint8_t>()[0] == 0);
}

TEST_CASE("evaluation batches smaller than their microbatches are refused") {
  CHECK_THROWS_AS(troupe::detail::evaluation_source(small_dataset(10), 4, 5), troupe::bad_input);
  CHECK_THROWS_AS(troupe::detail::evaluation_source(small_dataset(10), 4, 0), troupe::bad_input);
}

TEST_CASE("an evaluation without samples is refused, one with fewer samples than a batch is not") {
  CHECK_THROWS_AS(troupe::detail::evaluation_source(nullptr, 4, 2), troupe::bad_input);
  CHECK_THROWS_AS(troupe::detail::evaluation_source(small_dataset(0), 4, 2), troupe::bad_input);
  troupe::detail::evaluation_source source(small_dataset(10), std::numeric_limits<std::int64_t>::max(), 2);
  CHECK(source.num_steps_per_epoch() == 1);
  CHECK(source.at(0).targets.num_elements() == 10);
}
