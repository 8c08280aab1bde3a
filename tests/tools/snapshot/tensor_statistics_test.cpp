#include "snapshot/tensor_statistics.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>

using troupe::statistics_of;
using troupe::tensor;

TEST_CASE("statistics leave NaN out and count it") {
  auto nan = std::numeric_limits<float>::quiet_NaN();
  auto found = statistics_of(tensor::from(std::vector<float>{3, nan, -4, nan}, {4}));
  CHECK(found.min == -4);
  CHECK(found.max == 3);
  CHECK(found.mean == -0.5);
  CHECK(found.rms == std::sqrt(12.5));
  CHECK(found.num_nan == 2);
}

TEST_CASE("statistics of no elements and of only NaN are NaN") {
  CHECK(std::isnan(statistics_of(tensor::empty({0})).min));
  auto found = statistics_of(tensor::full({3}, std::numeric_limits<float>::quiet_NaN()));
  CHECK(std::isnan(found.mean));
  CHECK(found.num_nan == 3);
}

TEST_CASE("statistics know every dtype") {
  CHECK(statistics_of(tensor::from(std::vector<std::uint8_t>{1, 255}, {2})).max == 255);
  CHECK(statistics_of(tensor::from(std::vector<std::int32_t>{-7, 1}, {2})).min == -7);
  CHECK(statistics_of(tensor::from(std::vector{troupe::bfloat16(-2.5F)}, {1})).mean == -2.5);
  CHECK(statistics_of(tensor::from(std::vector{troupe::float16(0.125F)}, {1})).rms == 0.125);
  auto truths = tensor::zeros({2}, troupe::dtype::boolean);
  truths.values<bool>()[1] = true;
  CHECK(statistics_of(truths).mean == 0.5);
  CHECK(statistics_of(tensor::from(std::vector<std::int64_t>{1LL << 40}, {})).mean == std::pow(2.0, 40));
}

TEST_CASE("statistics of a tensor with infinities show them") {
  auto found =
      statistics_of(tensor::from(std::vector<float>{std::numeric_limits<float>::infinity(), 1}, {2}));
  CHECK(std::isinf(found.max));
  CHECK(found.min == 1);
}
