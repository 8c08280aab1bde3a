#include "troupe/data/map_dataset.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "api/data/small_dataset.hpp"
#include "support/bits.hpp"
#include "troupe/data/detail/describe_samples.hpp"
#include "troupe/data/detail/evaluation_source.hpp"
#include "troupe/data/detail/training_source.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using troupe::testing::same_bits;
using troupe::testing::small_dataset;

namespace {

/// The samples of small_dataset, made one by one.
dataset_ptr made_one_by_one(std::int64_t num_samples) {
  return map_dataset({num_samples, 2}, [](std::int64_t index) {
    auto i = static_cast<std::uint8_t>(index), next = static_cast<std::uint8_t>(index + 1);
    return labelled_samples{tensor::from(std::vector{i, next}, {2}), tensor::from(std::vector{i}, {})};
  });
}

/// Sample 3 is another one than the others.
dataset_ptr mixed(labelled_samples third) {
  return map_dataset({4, 2}, [third](std::int64_t index) {
    return index == 3 ? third : labelled_samples{tensor::zeros({2}), tensor::zeros({})};
  });
}

}  // namespace

TEST_CASE("samples made one by one are those of a data set in memory with the same samples") {
  auto made = made_one_by_one(50), whole = small_dataset(50);
  CHECK(made->num_samples() == 50);
  auto got = made->read(std::vector<std::int64_t>{7, 3, 3}),
       expected = whole->read(std::vector<std::int64_t>{7, 3, 3});
  CHECK(same_bits(got.samples, expected.samples));
  CHECK(same_bits(got.labels, expected.labels));
  CHECK(same_bits(made->read_rows(10, 5).samples, whole->read_rows(10, 5).samples));
  CHECK(detail::describe_samples(*made) == detail::describe_samples(*whole));
  CHECK(detail::describe_content(*made) == detail::describe_content(*whole));
  CHECK(detail::describe_inputs(*made) == detail::describe_inputs(*whole));

  auto trained = detail::make_training_source(made, {.batch = 8, .microbatches = 4})->at(9);
  auto usual = detail::make_training_source(whole, {.batch = 8, .microbatches = 4})->at(9);
  CHECK(same_bits(trained.inputs, usual.inputs));
  CHECK(same_bits(trained.targets, usual.targets));
  CHECK(same_bits(detail::evaluation_source(made, 8, 2).at(6).targets,
                  detail::evaluation_source(whole, 8, 2).at(6).targets));
}

TEST_CASE("a data set that is read in parts has no tensor of all samples") {
  auto made = made_one_by_one(5);
  made->load();
  CHECK_THROWS_WITH(made->samples(), ContainsSubstring("use read or read_rows"));
  CHECK_THROWS_AS(made->labels(), std::logic_error);
}

TEST_CASE("samples without labels do for predictions only") {
  auto unlabelled = map_dataset({4, 2}, [](std::int64_t) { return labelled_samples{tensor::zeros({2})}; });
  CHECK_THROWS_WITH(detail::describe_content(*unlabelled), ContainsSubstring("predictions only"));
  CHECK_THROWS_AS(detail::make_training_source(unlabelled, {.batch = 2, .microbatches = 1})->at(0),
                  bad_input);
  CHECK_THROWS_AS(detail::evaluation_source(unlabelled, 2, 1).at(0), bad_input);
  CHECK(detail::evaluation_source(unlabelled, 2, 1, detail::evaluation_part::samples).at(0).inputs.shape() ==
        shape{2, 2});
}

TEST_CASE("a data set without samples is refused before it is read") {
  CHECK_THROWS_WITH(detail::describe_content(*made_one_by_one(0)), "the data set has no samples: [0, 2]");
}

TEST_CASE("samples that do not fit each other or the shape that was declared are refused") {
  std::vector<std::int64_t> all{0, 1, 3};
  CHECK_NOTHROW(mixed({tensor::zeros({2}), tensor::zeros({})})->read(all));
  CHECK_THROWS_WITH(mixed({tensor::zeros({3}), tensor::zeros({})})->read(all),
                    ContainsSubstring("expected f32[2] as of the other samples of the batch, got f32[3]"));
  CHECK_THROWS_AS(mixed({tensor::zeros({2}, dtype::u8), tensor::zeros({})})->read(all),
                  std::invalid_argument);
  CHECK_THROWS_AS(mixed({tensor::zeros({2}), {}})->read(all), std::invalid_argument);
  CHECK_THROWS_AS(mixed({tensor::zeros({3}), tensor::zeros({})})->read_rows(3, 1), std::invalid_argument);
}

TEST_CASE("indices out of range, a shape without axes and an empty function are refused") {
  CHECK_THROWS_WITH(made_one_by_one(5)->read(std::vector<std::int64_t>{0, 5}),
                    ContainsSubstring("expected indices in [0, 5), got 5"));
  CHECK_THROWS_AS(small_dataset(5)->read(std::vector<std::int64_t>{-1}), std::invalid_argument);
  CHECK_THROWS_AS(map_dataset({}, [](std::int64_t) { return labelled_samples{}; }), std::invalid_argument);
  CHECK_THROWS_AS(map_dataset({4, 2}, nullptr), std::invalid_argument);
  CHECK_THROWS_AS(dataset(std::shared_ptr<sample_reader>()), std::invalid_argument);
}
