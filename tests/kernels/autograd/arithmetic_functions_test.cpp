#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "kernels/autograd/finite_differences.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using troupe::testing::check;
using troupe::testing::elements_of;
using troupe::testing::placed;
using troupe::testing::random_tensor;

namespace {

tensor x() { return random_tensor({2, 3, 4}, "x"); }

/// Away from 0, and positive.
tensor positive() {
  auto result = x();
  for (auto& each : result.values<float>()) each += 2;
  return result;
}

/// A product of matrices made from x and y, whose gradients are held to differences.
void check_product(const shape& a, const shape& b, const matmul_options& options = {}) {
  check([&](const auto& in) { return matmul(in[0], in[1], options); },
        {random_tensor(a, "a"), random_tensor(b, "b")});
}

}  // namespace

TEST_CASE("recorded functions of one variable have the gradients of their formulas") {
  check([](const auto& in) { return exp(in[0]); }, {x()});
  check([](const auto& in) { return log(in[0]); }, {positive()});
  check([](const auto& in) { return sqrt(in[0]); }, {positive()});
  check([](const auto& in) { return negate(in[0]); }, {x()});
  check([](const auto& in) { return abs(in[0]); }, {positive()});
  check([](const auto& in) { return abs(negate(in[0])); }, {positive()});
  check([](const auto& in) { return reciprocal(in[0]); }, {positive()});
  check([](const auto& in) { return add(in[0], 3); }, {x()});
  check([](const auto& in) { return multiply(in[0], -3); }, {x()});
  check([](const auto& in) { return broadcast_to(in[0], {3, 2, 5, 4}); }, {random_tensor({2, 1, 4}, "x")});
}

TEST_CASE("clipping passes the gradient within the limits, including the limits") {
  auto x = leaf(placed(tensor::from(std::vector<float>{-2, -0.5F, 0, 0.25F, 3}, {5})));
  auto y = clamp(x, -0.5F, 0.25F);
  CHECK(elements_of<float>(y.value) == std::vector<float>{-0.5F, -0.5F, 0, 0.25F, 0.25F});
  y.backward(placed(tensor::from(std::vector<float>{1, 2, 3, 4, 5}, {5})));
  CHECK(elements_of<float>(x.gradient()) == std::vector<float>{0, 2, 3, 4, 0});
  CHECK_THROWS_AS(clamp(x, 1, 0), std::invalid_argument);
}

TEST_CASE("the gradient of a magnitude at 0 is 0") {
  auto x = leaf(placed(tensor::from(std::vector<float>{-1, 0, 2}, {3})));
  abs(x).backward(placed(tensor::full({3}, 5)));
  CHECK(elements_of<float>(x.gradient()) == std::vector<float>{-5, 0, 5});
}

TEST_CASE("recorded reductions have the gradients of what they reduce, over some axes or all") {
  for (const auto& axes : {std::vector<int>{}, {0}, {-1}, {0, 2}, {1, 2}})
    for (bool keep_axes : {false, true}) {
      reduction_options options{axes, keep_axes};
      check([&](const auto& in) { return sum(in[0], options); }, {x()});
      check([&](const auto& in) { return mean(in[0], options); }, {x()});
      check([&](const auto& in) { return max(in[0], options); }, {x()});
      check([&](const auto& in) { return min(in[0], options); }, {x()});
    }
}

TEST_CASE("equal largest elements share the gradient evenly") {
  auto x = leaf(placed(tensor::from(std::vector<float>{1, 4, 4, 2, 3, 3}, {2, 3})));
  max(x, {.axes = {1}}).backward(placed(tensor::from(std::vector<float>{6, 8}, {2})));
  CHECK(elements_of<float>(x.gradient()) == std::vector<float>{0, 3, 3, 0, 4, 4});
}

TEST_CASE("recorded matrix products have the gradients of both operands, transposed, batched and broadcast") {
  check_product({3, 4}, {4, 2});
  check_product({4, 3}, {2, 4}, {.transpose_a = true, .transpose_b = true});
  for (bool transpose_a : {false, true})
    for (bool transpose_b : {false, true}) {
      auto a = transpose_a ? shape{2, 4, 3} : shape{2, 3, 4};
      matmul_options options{transpose_a, transpose_b};
      check_product(a, transpose_b ? shape{2, 2, 4} : shape{2, 4, 2}, options);
      check_product(a, transpose_b ? shape{2, 4} : shape{4, 2}, options);
    }
}

TEST_CASE("products compute in the dtype of autocast and give their gradients back in that of the operands") {
  auto a = leaf(placed(random_tensor({3, 4}, "a"))), b = leaf(placed(random_tensor({4, 2}, "b")));
  autocast mixed(dtype::bf16);
  auto c = matmul(a, b);
  CHECK(c.value.dtype() == dtype::bf16);
  c.backward(placed(tensor::zeros({3, 2}, dtype::bf16)));
  CHECK(a.gradient().dtype() == dtype::f32);
  CHECK(b.gradient().dtype() == dtype::f32);
}

TEST_CASE("gradients of reductions and of rows have the dtype of the operand") {
  auto half = leaf(cast(placed(x()), dtype::bf16));
  auto indices = placed(tensor::from(std::vector<std::int64_t>{1, 1}, {2}));
  for (const auto& y : {sum(half), mean(half, {.axes = {1}}), max(half), gather_rows(half, indices)}) {
    CHECK(y.value.dtype() == dtype::bf16);
    y.backward(placed(tensor::zeros(y.value.shape(), dtype::bf16)));
    CHECK(half.gradient().dtype() == dtype::bf16);
  }
}
