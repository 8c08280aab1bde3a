#include "troupe/ops/activation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "support/bits.hpp"
#include "troupe/ops/convert.hpp"

using troupe::tensor;
using troupe::testing::same_bits;

TEST_CASE("relu keeps what is positive, and its gradient passes there") {
  auto x = tensor::from(std::vector<float>{-1, 0, 2, -0.0F, 3, -4, 5}, {7});
  auto y = troupe::relu_forward(x);
  CHECK(same_bits(y, tensor::from(std::vector<float>{0, 0, 2, 0, 3, 0, 5}, {7})));
  auto dy = tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6, 7}, {7});
  CHECK(same_bits(troupe::relu_backward(dy, y), tensor::from(std::vector<float>{0, 0, 3, 0, 5, 0, 7}, {7})));
}

TEST_CASE("relu refuses other dtypes and shapes") {
  CHECK_THROWS_AS(troupe::relu_forward(tensor::zeros({3}, troupe::dtype::u8)), std::invalid_argument);
  CHECK_THROWS_AS(troupe::relu_forward({}), std::invalid_argument);
  CHECK_THROWS_AS(troupe::relu_backward(tensor::zeros({3}), tensor::zeros({4})), std::invalid_argument);
}

TEST_CASE("bytes become scaled floats of the same shape") {
  auto x = tensor::from(std::vector<std::uint8_t>{0, 1, 255}, {3, 1});
  CHECK(same_bits(troupe::to_float(x, 0.5F), tensor::from(std::vector<float>{0, 0.5F, 127.5F}, {3, 1})));
  CHECK_THROWS_AS(troupe::to_float(tensor::zeros({3}), 1), std::invalid_argument);
}
