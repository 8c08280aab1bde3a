#include "troupe/data/describe_samples.hpp"

#include <catch2/catch_test_macros.hpp>

#include "small_dataset.hpp"

using namespace troupe;

namespace {

/// 100 samples of 2 bytes; one byte differs if `changed` is not negative.
std::string content_with(int changed) {
  auto samples = tensor::zeros({100, 2}, dtype::u8), labels = tensor::zeros({100}, dtype::u8);
  if (changed >= 0) samples.values<std::uint8_t>()[static_cast<std::size_t>(changed)] = 1;
  dataset made(labelled_samples{samples, labels});
  return describe_content(made);
}

}  // namespace

TEST_CASE("a data set is described without being read") {
  dataset samples({60'000, 28, 28}, []() -> labelled_samples { throw std::runtime_error("not to be read"); });
  CHECK(describe_samples(samples) == "60000 samples of [28, 28]");
}

TEST_CASE("other samples, labels or dtypes give another description of the content") {
  auto usual = content_with(-1);
  CHECK(usual == content_with(-1));
  CHECK(usual != content_with(0));
  dataset labelled(labelled_samples{tensor::zeros({100, 2}, dtype::u8), tensor::full({100}, 1)});
  CHECK(describe_content(labelled) != usual);
  dataset floats(labelled_samples{tensor::zeros({100, 2}), tensor::zeros({100}, dtype::u8)});
  CHECK(describe_content(floats) != usual);
  CHECK(describe_content(*testing::small_dataset(3)) != describe_content(*testing::small_dataset(4)));
  CHECK(describe_content(*testing::small_dataset(0)).starts_with("u8, labels u8[0], "));
}
