#include "troupe/data/detail/describe_samples.hpp"

#include <catch2/catch_test_macros.hpp>

#include "small_dataset.hpp"
#include "troupe/data/stream_dataset.hpp"

using namespace troupe;

namespace {

/// 100 samples of 2 bytes; one byte differs if `changed` is not negative.
std::string content_with(int changed) {
  auto samples = tensor::zeros({100, 2}, dtype::u8), labels = tensor::zeros({100}, dtype::u8);
  if (changed >= 0) samples.values<std::uint8_t>()[static_cast<std::size_t>(changed)] = 1;
  dataset made(labelled_samples{samples, labels});
  return detail::describe_content(made);
}

}  // namespace

TEST_CASE("a data set is described without being read") {
  dataset samples({60'000, 28, 28}, []() -> labelled_samples { throw std::runtime_error("not to be read"); });
  CHECK(detail::describe_samples(samples) == "60000 samples of [28, 28]");
}

TEST_CASE("a stream is described with its shards and shuffle buffer") {
  auto of = [](std::vector<int> sizes, std::int64_t shuffle_buffer) {
    std::vector<dataset_ptr> shards;
    for (auto size : sizes) shards.push_back(testing::small_dataset(size));
    auto stream = stream_dataset(shards, {.shuffle_buffer = shuffle_buffer});
    CHECK(detail::describe_samples(*stream) == "9 samples of [2], " + detail::describe_stream(*stream));
    return detail::describe_stream(*stream);
  };
  CHECK(of({4, 5}, 3).starts_with("a stream of 2 shards, shuffle buffer 3, "));
  CHECK(of({4, 5}, 3) == of({4, 5}, 3));
  CHECK(of({4, 5}, 3) != of({5, 4}, 3));
  CHECK(of({4, 5}, 3) != of({4, 5}, 2));
  CHECK(detail::describe_stream(*testing::small_dataset(9)).empty());
}

TEST_CASE("other samples, labels or dtypes give another description of the content") {
  auto usual = content_with(-1);
  CHECK(usual == content_with(-1));
  CHECK(usual != content_with(0));
  dataset labelled(labelled_samples{tensor::zeros({100, 2}, dtype::u8), tensor::full({100}, 1)});
  CHECK(detail::describe_content(labelled) != usual);
  dataset floats(labelled_samples{tensor::zeros({100, 2}), tensor::zeros({100}, dtype::u8)});
  CHECK(detail::describe_content(floats) != usual);
  CHECK(detail::describe_content(*testing::small_dataset(3)) !=
        detail::describe_content(*testing::small_dataset(4)));
  CHECK(detail::describe_content(*testing::small_dataset(0)).starts_with("u8, labels u8[0], "));
}
