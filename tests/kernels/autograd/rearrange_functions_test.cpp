#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "kernels/autograd/finite_differences.hpp"
#include "support/bits.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/ops/rearrange.hpp"

using namespace troupe;
using troupe::testing::check;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

const tensor left = random_tensor({2, 3, 4}, "a"), right = random_tensor({2, 5, 4}, "b");

}  // namespace

TEST_CASE("concat and split have the gradients of their parts") {
  auto joined = [](const std::vector<variable>& in) { return concat(in, 1); };
  check(joined, {left.clone(), right.clone()});
  check([](const auto& in) { return concat({in[0], in[0]}, -1); }, {left.clone()});
  check([](const auto& in) { return slice(in[0], 1, 1, 2); }, {left.clone()});
  check([](const auto& in) { return slice(in[0], -1, 0, 3); }, {left.clone()});
  check(
      [](const auto& in) {
        auto parts = split(in[0], 2, {1, 3});
        return multiply(parts[0], parts[1]);
      },
      {left.clone()});
}

TEST_CASE("parts equal those of the tensors, and parts without required gradient get none") {
  auto wanted = leaf(placed(left));
  auto y = concat({wanted, {placed(right)}}, 1);
  CHECK(same_bits(y.value, concat(std::vector{left, right}, 1)));
  auto parts = split(y, 1, {3, 5});
  CHECK(same_bits(parts[1].value, right));
  auto dy = placed(random_tensor({2, 8, 4}, "dy"));
  y.backward(dy);
  CHECK(same_bits(wanted.gradient(), slice(dy, 1, 0, 3)));
  CHECK_THROWS_AS(concat(std::vector<variable>{}, 0), std::invalid_argument);
  CHECK_THROWS_AS(split(y, 1, {3, 4}), std::invalid_argument);
}

TEST_CASE("transposed variables have their gradients transposed back") {
  check([](const auto& in) { return transpose(in[0]); }, {left.clone()});
  check([](const auto& in) { return transpose(in[0], {2, 0, 1}); }, {left.clone()});
  check([](const auto& in) { return transpose(in[0], {-1, 0, -2}); }, {left.clone()});
}

TEST_CASE("gather_rows and scatter_add_rows have each other's gradients") {
  auto indices = placed(tensor::from(std::vector<std::int64_t>{2, 0, 2, 3}, {2, 2}));
  check([&](const auto& in) { return gather_rows(in[0], indices); }, {random_tensor({4, 3}, "values")});
  check([&](const auto& in) { return scatter_add_rows(in[0], indices, in[1]); },
        {random_tensor({4, 3}, "sum"), random_tensor({2, 2, 3}, "rows")});
}

TEST_CASE("scatter_add_rows does not change its operand") {
  auto sum = placed(tensor::zeros({3, 2})), before = sum.clone(), ones = placed(tensor::full({1, 2}, 1));
  auto made = scatter_add_rows({sum}, placed(tensor::from(std::vector<std::int64_t>{1}, {1})), {ones});
  CHECK(same_bits(sum, before));
  CHECK(same_bits(made.value, tensor::from(std::vector<float>{0, 0, 1, 1, 0, 0}, {3, 2})));
}
