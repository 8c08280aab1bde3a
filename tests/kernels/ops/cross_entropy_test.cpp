#include "troupe/ops/cross_entropy.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::cross_entropy_backward;
using troupe::cross_entropy_forward;
using troupe::cross_entropy_options;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::values_of;

namespace {

using scores = std::vector<double>;

/// The definition, in f64 with the C library.
double reference_loss(const scores& z, std::size_t label, double smoothing) {
  double sum = 0, loss = 0;
  for (auto score : z) sum += std::exp(score);
  for (std::size_t j = 0; j < z.size(); ++j) {
    auto target = (j == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(z.size());
    loss += target * (std::log(sum) - z[j]);
  }
  return loss;
}

scores scores_of(const tensor& logits, std::size_t sample) {
  auto all = values_of(logits);
  auto size = static_cast<std::ptrdiff_t>(logits.shape()[-1]);
  auto first = all.begin() + static_cast<std::ptrdiff_t>(sample) * size;
  return {first, first + size};
}

const std::vector<std::int64_t> labels{6, 0, 3, 3, 1, -100};
tensor label_tensor() { return placed(tensor::from(labels, {2, 3})); }
constexpr std::size_t num_classes = 37;

tensor gradient_of(const tensor& logits, const tensor& value, double scale,
                   const cross_entropy_options& o = {}) {
  return cross_entropy_backward(logits, value, cross_entropy_forward(logits, value, o).log_sum_exp, scale, o);
}

}  // namespace

TEST_CASE("cross entropy sums the losses and counts correct samples, except for ignored ones") {
  for (auto type : troupe::testing::floating_types)
    for (double smoothing : {0.0, 0.1}) {
      auto logits = placed(random_tensor({2, 3, num_classes}, "logits", type, 5));
      auto result = cross_entropy_forward(logits, label_tensor(), {.label_smoothing = smoothing});
      double expected = 0;
      int correct = 0;
      for (std::size_t i = 0; i < 5; ++i) {
        auto z = scores_of(logits, i);
        expected += reference_loss(z, static_cast<std::size_t>(labels[i]), smoothing);
        correct += std::ranges::max_element(z) - z.begin() == labels[i];
      }
      CHECK(std::abs(result.loss_sum - expected) < 1e-6 * expected);
      CHECK(result.num_correct == correct);
      CHECK(result.num_counted == 5);
    }
}

TEST_CASE("the forward pass keeps the logarithm of the sum of exponentials") {
  auto logits = placed(random_tensor({2, 3, num_classes}, "logits"));
  auto kept = values_of(cross_entropy_forward(logits, label_tensor()).log_sum_exp);
  REQUIRE(kept.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    double sum = 0;
    for (auto z : scores_of(logits, i)) sum += std::exp(z);
    CHECK(std::abs(kept[i] - std::log(sum)) < 1e-6);
  }
}

TEST_CASE("a sample is correct if its label has the largest score, the first of equals") {
  auto result = cross_entropy_forward(placed(tensor::zeros({2, 3})),
                                      placed(tensor::from(std::vector<std::int64_t>{0, 1}, {2})));
  CHECK(result.num_correct == 1);
  CHECK(std::abs(result.loss_sum - 2 * std::log(3.0)) < 1e-14);
  auto logits = random_tensor({1, 50}, "logits");
  logits.values<float>()[41] = 2;
  logits = placed(logits);
  auto counted = [&](std::int64_t label) {
    return cross_entropy_forward(logits, placed(tensor::from(std::vector{label}, {1}))).num_correct;
  };
  CHECK(counted(41) == 1);
  CHECK(counted(40) == 0);
}

TEST_CASE("the gradient is that of finite differences in f64") {
  constexpr double scale = 0.25, delta = 1e-5;
  for (auto type : troupe::testing::floating_types)
    for (double smoothing : {0.0, 0.1}) {
      auto logits = placed(random_tensor({2, 3, num_classes}, "logits", type, 3));
      auto gradient = gradient_of(logits, label_tensor(), scale, {.label_smoothing = smoothing});
      CHECK(gradient.dtype() == type);
      for (std::size_t i = 0; i < 5; ++i)
        for (std::size_t j = 0; j < num_classes; ++j) {
          auto up = scores_of(logits, i), down = up;
          up[j] += delta;
          down[j] -= delta;
          auto label = static_cast<std::size_t>(labels[i]);
          auto change = reference_loss(up, label, smoothing) - reference_loss(down, label, smoothing);
          auto expected = scale * change / (2 * delta);
          auto tolerance = type == dtype::f32 ? 2e-7 : 1e-2 * std::abs(expected) + 1e-6;
          REQUIRE(std::abs(scores_of(gradient, i)[j] - expected) < tolerance);
        }
      CHECK(scores_of(gradient, 5) == scores(num_classes, 0));
    }
}

TEST_CASE("labels may have 8, 32 or 64 bits, and any value may be ignored") {
  auto logits = placed(random_tensor({5, 7}, "logits"));
  tensor wide = placed(tensor::from(std::vector<std::int64_t>{6, 0, 3, 3, 1}, {5}));
  tensor others[] = {placed(tensor::from(std::vector<std::int32_t>{6, 0, 3, 3, 1}, {5})),
                     placed(tensor::from(std::vector<std::uint8_t>{6, 0, 3, 3, 1}, {5}))};
  cross_entropy_options options{.ignore_index = 3};
  auto expected = cross_entropy_forward(logits, wide, options);
  CHECK(expected.num_counted == 3);
  for (const auto& narrow : others) {
    CHECK(cross_entropy_forward(logits, narrow, options).loss_sum == expected.loss_sum);
    CHECK(troupe::testing::same_bits(gradient_of(logits, wide, 1), gradient_of(logits, narrow, 1)));
  }
}

TEST_CASE("huge scores neither overflow nor lose the loss") {
  auto logits = placed(tensor::from(std::vector<float>{3e38F, -3e38F, 1000, 0}, {2, 2}));
  auto label = placed(tensor::from(std::vector<std::int64_t>{0, 1}, {2}));
  CHECK(cross_entropy_forward(logits, label).loss_sum == 1000);
  CHECK(values_of(gradient_of(logits, label, 1)) == scores{0, 0, 1, -1});
}

TEST_CASE("a diverged model has a loss of NaN") {
  auto logits = placed(tensor::full({1, 3}, std::numeric_limits<float>::quiet_NaN()));
  auto label = placed(tensor::from(std::vector<std::int64_t>{0}, {1}));
  CHECK(std::isnan(cross_entropy_forward(logits, label).loss_sum));
  CHECK(std::isnan(values_of(gradient_of(logits, label, 1))[2]));
}

TEST_CASE("cross entropy gives the same bits on any number of threads") {
  auto logits = placed(random_tensor({317, 203}, "logits"));
  std::vector<std::int32_t> wanted(317);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<std::int32_t>(i * 7 % 203);
  auto of = placed(tensor::from(wanted, {317}));
  troupe::testing::require_same_bits_on_threads([&] {
    auto result = cross_entropy_forward(logits, of);
    return std::vector{result.log_sum_exp, tensor::from(std::vector{result.num_correct}, {1}),
                       tensor::from(std::vector{std::bit_cast<std::int64_t>(result.loss_sum)}, {1}),
                       cross_entropy_backward(logits, of, result.log_sum_exp, 0.5)};
  });
}

TEST_CASE("labels out of range and other shapes are refused by name", "[host]") {
  auto logits = random_tensor({2, 3}, "logits");
  auto label = [](std::int64_t first, std::int64_t second) {
    return tensor::from(std::vector{first, second}, {2});
  };
  auto rows = tensor::zeros({2});
  CHECK_THROWS_WITH(cross_entropy_forward(logits, label(0, 3)),
                    ContainsSubstring("labels in [0, 3)") && ContainsSubstring("3 at sample 1"));
  CHECK_THROWS_WITH(cross_entropy_backward(logits, label(-1, 0), rows, 1),
                    ContainsSubstring("-1 at sample 0"));
  CHECK_THROWS_WITH(cross_entropy_forward(logits, tensor::zeros({3}, dtype::u8)),
                    ContainsSubstring("labels i64, i32 or u8 [2], got u8[3]"));
  CHECK_THROWS_WITH(cross_entropy_forward(logits, rows),
                    ContainsSubstring("labels i64, i32 or u8 [2], got f32[2]"));
  CHECK_THROWS_WITH(cross_entropy_forward(logits, {}), ContainsSubstring("undefined"));
  CHECK_THROWS_WITH(cross_entropy_forward(tensor::zeros({2, 3}, dtype::i64), label(0, 0)),
                    ContainsSubstring("logits of f32, bf16 or f16"));
  CHECK_THROWS_WITH(cross_entropy_forward(tensor::zeros({2, 0}), label(0, 0)),
                    ContainsSubstring("logits [..., C] with C >= 1"));
  CHECK_THROWS_WITH(cross_entropy_backward(logits, label(0, 0), tensor::zeros({3}), 1),
                    ContainsSubstring("log_sum_exp f32[2], got f32[3]"));
  CHECK_THROWS_WITH(cross_entropy_forward(logits, label(0, 0), {.label_smoothing = 1}),
                    ContainsSubstring("label_smoothing in [0, 1)"));
}

TEST_CASE("labels are counted without the loss as with it, in each dtype") {
  auto labels = tensor::from(std::vector<std::int64_t>{0, -100, 2, -100, 1, 7}, {2, 3});
  CHECK(num_counted(labels) == 4);
  CHECK(num_counted(labels, {.ignore_index = 7}) == 5);
  CHECK(num_counted(tensor::from(std::vector<std::int32_t>{-100, 3}, {2})) == 1);
  CHECK(num_counted(tensor::from(std::vector<std::uint8_t>{1, 255, 0}, {3}), {.ignore_index = 255}) == 2);
  CHECK(num_counted(tensor::empty({0}, dtype::i64)) == 0);
  CHECK_THROWS_AS(num_counted(tensor::zeros({2})), std::invalid_argument);
}
