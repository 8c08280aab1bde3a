#include "troupe/ops/activation.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <stdexcept>

#include "kernels/ops/activations.hpp"
#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::gelu_kind;
using troupe::tensor;
using troupe::testing::activations;
using troupe::testing::exact_sum;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

/// `function` of each element; its rounding is measured against the size of the result and of `floor`.
std::vector<exact_sum> expected(const std::function<double(double)>& function, const tensor& x,
                                double floor) {
  std::vector<exact_sum> results;
  for (auto value : values_of(x)) results.push_back({function(value), std::abs(function(value)) + floor});
  return results;
}

constexpr std::int64_t size = 5001;

}  // namespace

TEST_CASE("relu keeps positive elements, and its gradient passes at these") {
  auto x = placed(tensor::from(std::vector<float>{-1, 0, 2, -0.0F, 3, -4, 5}, {7}));
  auto y = troupe::relu_forward(x);
  CHECK(same_bits(y, tensor::from(std::vector<float>{0, 0, 2, 0, 3, 0, 5}, {7})));
  auto dy = placed(tensor::from(std::vector<float>{1, 2, 3, 4, 5, 6, 7}, {7}));
  CHECK(same_bits(troupe::relu_backward(dy, y), tensor::from(std::vector<float>{0, 0, 3, 0, 5, 0, 7}, {7})));
}

TEST_CASE("gelu, silu, tanh and sigmoid are their definitions in every floating dtype") {
  for (const auto& each : activations())
    for (auto type : troupe::testing::floating_types) {
      auto x = placed(random_tensor({3, size / 3}, "x", type, 8));
      require_close(each.forward(x), expected(each.function, x, 0.1));
    }
}

TEST_CASE("the gradients of activations are those of their definitions") {
  for (const auto& each : activations())
    for (auto type : troupe::testing::floating_types) {
      auto x = placed(random_tensor({size}, "x", type, 6));
      auto dy = placed(random_tensor({size}, "dy", type));
      auto exact = expected(each.derivative, x, 1);
      auto factors = values_of(dy);
      for (std::size_t i = 0; i < exact.size(); ++i) exact[i].value *= factors[i];
      require_close(each.backward(dy, x, each.forward(x)), exact);
    }
}

TEST_CASE("the derivatives of the definitions are those of finite differences", "[host]") {
  constexpr double delta = 1e-5;
  for (const auto& each : activations())
    for (double x = -6; x < 6; x += 0.0917) {
      auto difference = (each.function(x + delta) - each.function(x - delta)) / (2 * delta);
      REQUIRE(std::abs(each.derivative(x) - difference) < 1e-9);
    }
}

TEST_CASE("activations saturate at huge arguments") {
  auto x = placed(tensor::from(std::vector<float>{-3e38F, -100, 100, 3e38F}, {4}));
  auto dy = placed(tensor::full({4}, 1));
  auto ends = [](float a, float b, float c, float d) { return std::vector<double>{a, b, c, d}; };
  for (const auto& each : activations()) {
    auto y = values_of(each.forward(x)), dx = values_of(each.backward(dy, x, each.forward(x)));
    auto is_bounded = std::abs(y[3]) <= 1;
    CHECK(y == (is_bounded ? ends(y[0], y[0], 1, 1) : ends(0, 0, 100, 3e38F)));
    CHECK(dx == (is_bounded ? ends(0, 0, 0, 0) : ends(0, 0, 1, 1)));
  }
}

TEST_CASE("activations give the same bits every time, on any number of threads") {
  auto x = placed(random_tensor({100'003}, "x")), dy = placed(random_tensor({100'003}, "dy"));
  for (const auto& each : activations())
    troupe::testing::require_same_bits_on_threads([&] {
      auto y = each.forward(x);
      return std::vector{y, each.backward(dy, x, y)};
    });
}

TEST_CASE("activations of rows at any alignment have the bits of the same rows alone") {
  for (auto type : troupe::testing::floating_types) {
    auto rows = placed(random_tensor({9, 37}, "x", type)).rows(1, 7);
    CHECK(same_bits(troupe::silu_forward(rows), troupe::silu_forward(rows.clone())));
  }
}

TEST_CASE("activations refuse other dtypes and shapes", "[host]") {
  auto bytes = tensor::zeros({3}, dtype::u8), three = tensor::zeros({3}), four = tensor::zeros({4});
  CHECK_THROWS_AS(troupe::relu_forward(bytes), std::invalid_argument);
  CHECK_THROWS_AS(troupe::relu_forward({}), std::invalid_argument);
  CHECK_THROWS_AS(troupe::relu_backward(three, four), std::invalid_argument);
  CHECK_THROWS_WITH(gelu_forward(bytes, gelu_kind::tanh),
                    ContainsSubstring("[gelu] expected x of f32, bf16 or f16"));
  CHECK_THROWS_WITH(gelu_backward(three, four, gelu_kind::exact),
                    ContainsSubstring("[gelu_backward] expected dy f32[4], got f32[3]"));
  CHECK_THROWS_WITH(troupe::silu_backward(three, bytes),
                    ContainsSubstring("[silu_backward] expected x of f32"));
  CHECK_THROWS_WITH(troupe::tanh_backward(three, bytes),
                    ContainsSubstring("[tanh_backward] expected y of f32"));
  CHECK_THROWS_WITH(troupe::sigmoid_backward(tensor::zeros({4}, dtype::bf16), four),
                    ContainsSubstring("[sigmoid_backward] expected dy f32[4], got bf16[4]"));
}
