#include "troupe/ops/convert.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "support/bits.hpp"

using troupe::tensor;
using troupe::testing::same_bits;

TEST_CASE("bytes become scaled floats of the same shape") {
  auto x = tensor::from(std::vector<std::uint8_t>{0, 1, 255}, {3, 1});
  CHECK(same_bits(troupe::to_float(x, 0.5F), tensor::from(std::vector<float>{0, 0.5F, 127.5F}, {3, 1})));
  CHECK_THROWS_AS(troupe::to_float(tensor::zeros({3}), 1), std::invalid_argument);
}
