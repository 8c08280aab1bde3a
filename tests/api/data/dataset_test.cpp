#include "troupe/data/dataset.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

using troupe::dataset;
using troupe::tensor;

namespace {

troupe::labelled_samples content(std::int64_t samples, std::int64_t labels) {
  return {tensor::zeros({samples, 2}, troupe::dtype::u8), tensor::zeros({labels}, troupe::dtype::u8)};
}

}  // namespace

TEST_CASE("a data set is loaded once, by the first thread that uses it") {
  std::atomic<int> reads = 0;
  dataset samples({6, 2}, [&] {
    ++reads;
    return content(6, 6);
  });
  CHECK(samples.num_samples() == 6);
  CHECK(reads == 0);
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) askers.emplace_back([&] { samples.labels(); });
  for (auto& asker : askers) asker.join();
  samples.load();
  CHECK(samples.samples().shape() == troupe::shape{6, 2});
  CHECK(reads == 1);
}

TEST_CASE("a failed load is tried again at the next use") {
  int reads = 0;
  dataset samples({6, 2}, [&] {
    if (++reads == 1) throw std::runtime_error("disk is away");
    return content(6, 6);
  });
  CHECK_THROWS_AS(samples.load(), std::runtime_error);
  CHECK(samples.labels().num_elements() == 6);
}

TEST_CASE("samples without one label each, or with an undeclared shape, are refused") {
  CHECK_NOTHROW(dataset(content(3, 3)));
  CHECK_THROWS_AS(dataset(content(3, 2)), std::invalid_argument);
  dataset changed({6, 2}, [] { return content(5, 5); });
  CHECK_THROWS_AS(changed.samples(), std::invalid_argument);
}

TEST_CASE("a data set without axes or without a read function is refused") {
  CHECK_THROWS_AS(dataset(troupe::labelled_samples{}), std::invalid_argument);
  CHECK_THROWS_AS(dataset(troupe::shape{}, [] { return content(1, 1); }), std::invalid_argument);
  CHECK_THROWS_AS(dataset(troupe::shape{6, 2}, nullptr), std::invalid_argument);
}
