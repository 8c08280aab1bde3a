#include "troupe/ops/mse_loss.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::mse_loss_backward;
using troupe::mse_loss_forward;
using troupe::tensor;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::values_of;

namespace {

/// The definition, in f64.
double reference_loss(const std::vector<double>& prediction, const std::vector<double>& target) {
  double sum = 0;
  for (std::size_t i = 0; i < prediction.size(); ++i)
    sum += (prediction[i] - target[i]) * (prediction[i] - target[i]);
  return sum;
}

std::vector<double> reference_gradient(const std::vector<double>& prediction,
                                       const std::vector<double>& target, double scale) {
  std::vector<double> gradient;
  for (std::size_t i = 0; i < prediction.size(); ++i)
    gradient.push_back(2 * scale * (prediction[i] - target[i]));
  return gradient;
}

constexpr double scale = 0.37;

}  // namespace

TEST_CASE("the squared error is the sum of the squared differences") {
  for (auto type : troupe::testing::floating_types)
    for (const auto& extents : {troupe::shape{}, {1}, {7, 11}, {3, 41, 333}}) {
      auto prediction = placed(random_tensor(extents, "prediction", type, 3));
      auto target = placed(random_tensor(extents, "target", type, 3));
      auto exact = reference_loss(values_of(prediction), values_of(target));
      CHECK(std::abs(mse_loss_forward(prediction, target) - exact) <= 1e-12 * exact);
    }
  CHECK(mse_loss_forward(placed(tensor::zeros({0})), placed(tensor::zeros({0}))) == 0);
}

TEST_CASE("the gradient of the squared error follows its definition") {
  for (auto type : troupe::testing::floating_types) {
    auto prediction = placed(random_tensor({7, 703}, "prediction", type));
    auto target = placed(random_tensor({7, 703}, "target", type));
    auto got = mse_loss_backward(prediction, target, scale);
    REQUIRE(got.dtype() == type);
    REQUIRE(got.device() == prediction.device());
    std::vector<troupe::testing::exact_sum> expected;
    for (auto each : reference_gradient(values_of(prediction), values_of(target), scale))
      expected.emplace_back().add(each);
    require_close(got, expected);
  }
}

TEST_CASE("the reference gradient of the squared error is that of finite differences", "[host]") {
  constexpr double delta = 1e-4;
  auto at = values_of(random_tensor({5, 7}, "prediction")),
       target = values_of(random_tensor({5, 7}, "target"));
  auto gradient = reference_gradient(at, target, scale);
  for (std::size_t i = 0; i < at.size(); ++i) {
    auto up = at, down = at;
    up[i] += delta;
    down[i] -= delta;
    auto difference = scale * (reference_loss(up, target) - reference_loss(down, target)) / (2 * delta);
    REQUIRE(std::abs(gradient[i] - difference) < 1e-9);
  }
}

TEST_CASE("the squared error gives the same bits every time, on any number of threads") {
  auto prediction = placed(random_tensor({100'003}, "prediction"));
  auto target = placed(random_tensor({100'003}, "target"));
  troupe::testing::require_same_bits_on_threads([&] {
    auto loss = mse_loss_forward(prediction, target);
    return std::vector{tensor::from(std::vector{std::bit_cast<std::int64_t>(loss)}, {}),
                       mse_loss_backward(prediction, target, scale)};
  });
}

TEST_CASE("the squared error refuses other dtypes and shapes that differ", "[host]") {
  auto three = tensor::zeros({3}), four = tensor::zeros({4});
  CHECK_THROWS_WITH(mse_loss_forward(tensor::zeros({3}, dtype::u8), three),
                    ContainsSubstring("[mse_loss] expected prediction of f32, bf16 or f16"));
  CHECK_THROWS_WITH(mse_loss_forward(three, four),
                    ContainsSubstring("[mse_loss] expected target f32[3], got f32[4]"));
  CHECK_THROWS_WITH(mse_loss_backward(three, tensor::zeros({3}, dtype::bf16), 1),
                    ContainsSubstring("[mse_loss_backward] expected target f32[3], got bf16[3]"));
}
