#include "troupe/data/detail/training_source.hpp"

#include <catch2/catch_test_macros.hpp>

#include "small_dataset.hpp"
#include "troupe/data/sampler.hpp"
#include "troupe/error/errors.hpp"

using troupe::testing::small_dataset;

TEST_CASE("a training batch holds the sampler's samples, each beside its label") {
  auto source =
      troupe::detail::make_training_source(small_dataset(50), {.batch = 8, .microbatches = 4, .seed = 9});
  CHECK(source->num_steps_per_epoch() == 6);
  for (std::uint64_t step : {0, 5, 6, 40}) {
    auto got = source->at(step);
    CHECK(troupe::describe(got.inputs) == "u8[8, 2]");
    CHECK(troupe::describe(got.targets) == "u8[8]");
    auto expected = troupe::batch_indices({.num_samples = 50, .batch = 8, .seed = 9}, step);
    for (std::size_t row = 0; row < 8; ++row) {
      CHECK(got.targets.values<std::uint8_t>()[row] == expected[row]);
      CHECK(got.inputs.values<std::uint8_t>()[2 * row + 1] == expected[row] + 1);
    }
  }
}

TEST_CASE("batches between two flushes come together, in the sampler's order, also where an epoch ends") {
  auto source = troupe::detail::make_training_source(
      small_dataset(50), {.batch = 8, .microbatches = 4, .seed = 9, .flush_every = 4});
  CHECK(source->num_steps_per_epoch() == 6);
  for (std::uint64_t flush :
       {0, 1, 7}) {  // the second one has the last two batches of an epoch and two of the next
    auto got = source->at(flush);
    CHECK(troupe::describe(got.inputs) == "u8[32, 2]");
    for (std::uint64_t each = 0; each < 4; ++each) {
      auto expected = troupe::batch_indices({.num_samples = 50, .batch = 8, .seed = 9}, 4 * flush + each);
      for (std::size_t row = 0; row < 8; ++row)
        CHECK(got.targets.values<std::uint8_t>()[8 * each + row] == expected[row]);
    }
  }
}

TEST_CASE("a training batch that does not cut into microbatches is refused") {
  CHECK_THROWS_AS(troupe::detail::make_training_source(small_dataset(50), {.batch = 8, .microbatches = 3}),
                  troupe::bad_input);
  CHECK_THROWS_AS(troupe::detail::make_training_source(small_dataset(50), {.batch = 8, .microbatches = 0}),
                  troupe::bad_input);
  CHECK_THROWS_AS(troupe::detail::make_training_source(small_dataset(7), {.batch = 8, .microbatches = 8}),
                  troupe::bad_input);
}

TEST_CASE("training without samples, or in batches of an impossible size, is refused") {
  CHECK_THROWS_AS(troupe::detail::make_training_source(nullptr, {.batch = 4, .microbatches = 2}),
                  troupe::bad_input);
  CHECK_THROWS_AS(troupe::detail::make_training_source(small_dataset(0), {.batch = 4, .microbatches = 2}),
                  troupe::bad_input);
  CHECK_THROWS_AS(troupe::detail::make_training_source(small_dataset(10),
                                                       {.batch = std::int64_t{1} << 40, .microbatches = 2}),
                  troupe::bad_input);
  CHECK_THROWS_AS(troupe::detail::make_training_source(small_dataset(10), {.batch = 0, .microbatches = 2}),
                  troupe::bad_input);
}
