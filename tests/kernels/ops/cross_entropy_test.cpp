#include "troupe/ops/cross_entropy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::cross_entropy_backward;
using troupe::cross_entropy_forward;
using troupe::tensor;
using troupe::testing::random_tensor;

namespace {

/// The definition, in f64 with the C library.
double reference_loss(const std::vector<double>& scores, std::size_t label) {
  double sum = 0;
  for (auto score : scores) sum += std::exp(score);
  return std::log(sum) - scores[label];
}

std::vector<double> row(const tensor& logits, std::int64_t sample) {
  auto view = logits.rows(sample, 1);
  auto values = view.values<float>();
  return {values.begin(), values.end()};
}

const std::vector<std::int64_t> labels{6, 0, 3, 3, 1};

}  // namespace

TEST_CASE("cross entropy sums the losses and counts the correct") {
  auto logits = random_tensor({5, 7}, "logits");
  auto result = cross_entropy_forward(logits, tensor::from(labels, {5}));
  double expected = 0;
  int correct = 0;
  for (std::int64_t i = 0; i < 5; ++i) {
    auto scores = row(logits, i);
    auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(i)]);
    expected += reference_loss(scores, label);
    correct += std::ranges::max_element(scores) - scores.begin() == static_cast<std::ptrdiff_t>(label);
  }
  CHECK(std::abs(result.loss_sum - expected) < 1e-12 * expected);
  CHECK(result.num_correct == correct);
}

TEST_CASE("of equal scores the first counts") {
  auto result =
      cross_entropy_forward(tensor::zeros({2, 3}), tensor::from(std::vector<std::int64_t>{0, 1}, {2}));
  CHECK(result.num_correct == 1);
  CHECK(std::abs(result.loss_sum - 2 * std::log(3.0)) < 1e-14);
}

TEST_CASE("the gradient is that of finite differences in f64") {
  auto logits = random_tensor({5, 7}, "logits");
  constexpr double scale = 0.25, delta = 1e-5;
  auto gradient = cross_entropy_backward(logits, tensor::from(labels, {5}), scale);
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::size_t j = 0; j < 7; ++j) {
      auto up = row(logits, i), down = up;
      up[j] += delta;
      down[j] -= delta;
      auto label = static_cast<std::size_t>(labels[static_cast<std::size_t>(i)]);
      auto expected = scale * (reference_loss(up, label) - reference_loss(down, label)) / (2 * delta);
      auto got = gradient.values<float>()[static_cast<std::size_t>(i) * 7 + j];
      CHECK(std::abs(got - expected) < 1e-7);
    }
}

TEST_CASE("labels may be bytes") {
  auto logits = random_tensor({5, 7}, "logits");
  std::vector<std::uint8_t> bytes(labels.begin(), labels.end());
  auto wide = tensor::from(labels, {5}), narrow = tensor::from(bytes, {5});
  CHECK(cross_entropy_forward(logits, wide).loss_sum == cross_entropy_forward(logits, narrow).loss_sum);
  CHECK(troupe::testing::same_bits(cross_entropy_backward(logits, wide, 1),
                                   cross_entropy_backward(logits, narrow, 1)));
}

TEST_CASE("huge scores neither overflow nor lose the loss") {
  auto logits = tensor::from(std::vector<float>{3e38F, -3e38F, 1000, 0}, {2, 2});
  auto result = cross_entropy_forward(logits, tensor::from(std::vector<std::int64_t>{0, 1}, {2}));
  CHECK(result.loss_sum == 1000);
}

TEST_CASE("a diverged model has a loss that is not a number") {
  auto logits = tensor::full({1, 3}, std::numeric_limits<float>::quiet_NaN());
  auto label = tensor::from(std::vector<std::int64_t>{0}, {1});
  CHECK(std::isnan(cross_entropy_forward(logits, label).loss_sum));
  CHECK(std::isnan(cross_entropy_backward(logits, label, 1).values<float>()[2]));
}

TEST_CASE("labels out of range and other shapes are refused by name") {
  auto logits = random_tensor({2, 3}, "logits");
  auto label = [](std::int64_t first, std::int64_t second) {
    return tensor::from(std::vector{first, second}, {2});
  };
  CHECK_THROWS_WITH(cross_entropy_forward(logits, label(0, 3)),
                    ContainsSubstring("labels in [0, 3)") && ContainsSubstring("3 at sample 1"));
  CHECK_THROWS_AS(cross_entropy_backward(logits, label(-1, 0), 1), std::invalid_argument);
  CHECK_THROWS_WITH(cross_entropy_forward(logits, tensor::zeros({3}, troupe::dtype::u8)),
                    ContainsSubstring("labels u8[2]"));
  CHECK_THROWS_WITH(cross_entropy_forward(logits, tensor::zeros({2})),
                    ContainsSubstring("labels i64[2], got f32[2]"));
  CHECK_THROWS_WITH(cross_entropy_forward(logits, {}), ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(cross_entropy_forward(tensor::zeros({6}), label(0, 0)),
                    ContainsSubstring("logits f32 with 2 axes"));
  CHECK_THROWS_AS(cross_entropy_forward(tensor::zeros({2, 0}), label(0, 0)), std::invalid_argument);
}
