#include "troupe/ops/dropout.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <stdexcept>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::philox_stream;
using troupe::random_purpose;
using troupe::tensor;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::rounded_to;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

philox_stream stream_of(std::uint32_t microbatch) {
  return {17, random_purpose::activations, {0xfffffff0, microbatch, 3}};
}

}  // namespace

TEST_CASE("dropout zeroes the elements that its random stream selects and scales the others") {
  auto stream = stream_of(1);
  for (auto type : troupe::testing::floating_types)
    for (std::int64_t size : {0, 1, 5, 31, 32, 35, 6151})
      for (double p : {0.0, 0.1, 0.5, 0.99}) {
        auto x = placed(random_tensor({size}, "x", type));
        auto expected = values_of(x);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          auto word = stream.block(static_cast<std::uint32_t>(i / 4))[i % 4];
          auto value = static_cast<float>(expected[i]) * static_cast<float>(1 / (1 - p));
          expected[i] = word >= std::floor(p * 0x1p32) ? value : 0;
        }
        REQUIRE(same_bits(dropout(x, p, stream), rounded_to(expected, {size}, type)));
      }
}

TEST_CASE("dropout drops the given share of elements and keeps the mean") {
  constexpr std::int64_t size = 1'000'000;
  auto ones = placed(tensor::full({size}, 1));
  for (double p : {0.1, 0.5}) {
    std::int64_t dropped = 0;
    double sum = 0;
    for (auto value : values_of(dropout(ones, p, stream_of(2)))) {
      dropped += value == 0;
      sum += value;
    }
    auto deviation = std::sqrt(p * (1 - p) / size);
    CHECK(std::abs(static_cast<double>(dropped) / size - p) < 4 * deviation);
    CHECK(std::abs(sum / size - 1) < 4 * deviation / (1 - p));
  }
}

TEST_CASE("dropout of the gradient drops the same elements, and other streams drop others") {
  auto ones = placed(tensor::full({3, 1001}, 1)), twos = placed(tensor::full({3, 1001}, 2));
  auto y = values_of(dropout(ones, 0.3, stream_of(5))), dx = values_of(dropout(twos, 0.3, stream_of(5)));
  for (std::size_t i = 0; i < y.size(); ++i) REQUIRE(dx[i] == 2 * y[i]);
  CHECK_FALSE(same_bits(dropout(ones, 0.3, stream_of(5)), dropout(ones, 0.3, stream_of(6))));
}

TEST_CASE("dropout gives the same bits on any number of threads") {
  for (auto type : troupe::testing::floating_types) {
    auto x = placed(random_tensor({100'003}, "x", type));
    troupe::testing::require_same_bits_on_threads(
        [&] { return std::vector{dropout(x, 0.25, stream_of(7))}; });
  }
}

TEST_CASE("dropout refuses other dtypes and probabilities", "[host]") {
  auto x = tensor::zeros({3});
  CHECK_THROWS_WITH(dropout(tensor::zeros({3}, dtype::i32), 0.5, stream_of(0)),
                    ContainsSubstring("[dropout] expected x of f32, bf16 or f16, got i32[3]"));
  CHECK_THROWS_WITH(dropout(x, 1, stream_of(0)), ContainsSubstring("[dropout] expected p in [0, 1), got 1"));
  CHECK_THROWS_AS(dropout(x, -0.1, stream_of(0)), std::invalid_argument);
  CHECK_THROWS_AS(dropout(x, std::nan(""), stream_of(0)), std::invalid_argument);
}
