#include "troupe/ops/elementwise.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"

using troupe::tensor;
using troupe::testing::random_tensor;

TEST_CASE("axpy, add and scale work element by element on odd sizes") {
  auto x = random_tensor({37}, "x"), y = random_tensor({37}, "y");
  auto sum = troupe::add(x, y), scaled = x.clone(), added = y.clone();
  troupe::scale(scaled, 3);
  troupe::axpy(0.5F, x, added);
  for (std::size_t i = 0; i < 37; ++i) {
    auto a = x.values<float>()[i], b = y.values<float>()[i];
    CHECK(sum.values<float>()[i] == a + b);
    CHECK(scaled.values<float>()[i] == 3 * a);
    CHECK(added.values<float>()[i] == b + 0.5F * a);
  }
}

TEST_CASE("operands of different shapes are refused") {
  CHECK_THROWS_AS(troupe::add(tensor::zeros({3}), tensor::zeros({4})), std::invalid_argument);
  CHECK_THROWS_AS(troupe::axpy(1, tensor::zeros({3}), tensor::zeros({3, 1})), std::invalid_argument);
  CHECK_THROWS_AS(troupe::scale({}, 1), std::invalid_argument);
}
