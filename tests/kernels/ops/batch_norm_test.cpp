#include "troupe/ops/batch_norm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/devices.hpp"
#include "support/random_tensor.hpp"
#include "support/reference.hpp"
#include "support/rounded.hpp"
#include "troupe/ops/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

const std::vector<shape> batch_norm_shapes{{2, 3, 5, 7}, {7, 5},   {1, 2, 9},     {3, 4, 33, 35}, {65, 1, 3},
                                           {2, 1, 1, 1}, {9, 150}, {5, 37, 4, 5}, {3, 40, 2, 2}};
const std::vector<dtype> floating{dtype::f32, dtype::bf16, dtype::f16};

/// Everything in f64, with the elements of x by channel.
struct batch_norm_reference {
  shape extents;
  std::vector<double> x, weight, bias, dy;
  double epsilon = 1e-5;
  std::vector<double> mean{}, variance{};

  std::size_t num_channels() const { return static_cast<std::size_t>(extents[1]); }
  std::size_t count() const { return x.size() / num_channels(); }
  std::size_t channel(std::size_t at) const {
    auto image = x.size() / static_cast<std::size_t>(extents[0]);
    return at % image / (image / num_channels());
  }
  double rstd(std::size_t c) const { return 1 / std::sqrt(variance[c] + epsilon); }

  std::vector<double> averages(const std::function<double(std::size_t)>& term) const {
    std::vector<double> result(num_channels());
    for (std::size_t i = 0; i < x.size(); ++i) result[channel(i)] += term(i) / static_cast<double>(count());
    return result;
  }
  void take_moments() {
    mean = averages([&](std::size_t i) { return x[i]; });
    variance = averages([&](std::size_t i) { return std::pow(x[i] - mean[channel(i)], 2); });
  }
  double normalised(std::size_t i) const { return (x[i] - mean[channel(i)]) * rstd(channel(i)); }

  std::vector<exact_sum> y() const {
    std::vector<exact_sum> result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto c = channel(i);
      result[i].add(x[i] * rstd(c) * weight[c]);
      result[i].add(-mean[c] * rstd(c) * weight[c]);
      result[i].add(bias[c]);
    }
    return result;
  }
  std::vector<exact_sum> dx() const {
    auto of_dy = averages([&](std::size_t i) { return dy[i]; });
    auto of_products = averages([&](std::size_t i) { return dy[i] * normalised(i); });
    auto size_of_dy = averages([&](std::size_t i) { return std::abs(dy[i]); });
    auto size_of_products = averages([&](std::size_t i) { return std::abs(dy[i] * normalised(i)); });
    std::vector<exact_sum> result(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto c = channel(i);
      auto scale = rstd(c) * weight[c];
      result[i].value = scale * (dy[i] - of_dy[c] - normalised(i) * of_products[c]);
      auto distance = (std::abs(x[i]) + std::abs(mean[c])) * rstd(c);
      result[i].absolute =
          std::abs(scale) * (std::abs(dy[i]) + size_of_dy[c] + distance * size_of_products[c]);
    }
    return result;
  }
  std::vector<exact_sum> dweight() const {
    std::vector<exact_sum> result(num_channels());
    for (std::size_t i = 0; i < x.size(); ++i) {
      result[channel(i)].add(dy[i] * x[i] * rstd(channel(i)));
      result[channel(i)].add(-dy[i] * mean[channel(i)] * rstd(channel(i)));
    }
    return result;
  }
  std::vector<exact_sum> dbias() const {
    std::vector<exact_sum> result(num_channels());
    for (std::size_t i = 0; i < x.size(); ++i) result[channel(i)].add(dy[i]);
    return result;
  }
};

struct batch_norm_operands {
  tensor x, weight, bias, dy;

  batch_norm_operands(const shape& extents, dtype type, dtype parameter_type)
      : x(placed(rounded(random_tensor(extents, "x"), type))),
        weight(placed(rounded(random_tensor({extents[1]}, "weight"), parameter_type))),
        bias(placed(rounded(random_tensor({extents[1]}, "bias"), parameter_type))),
        dy(placed(rounded(random_tensor(extents, "dy"), type))) {}
  batch_norm_operands(const shape& extents, dtype type) : batch_norm_operands(extents, type, type) {}

  batch_norm_result forward() const { return batch_norm_forward(x, weight, bias, {}, {}); }
  batch_norm_reference expected() const {
    batch_norm_reference result{x.shape(), values_of(x), values_of(weight), values_of(bias), values_of(dy)};
    result.take_moments();
    return result;
  }
};

std::vector<exact_sum> exactly(const std::vector<double>& values) {
  std::vector<exact_sum> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) result[i].add(values[i]);
  return result;
}

}  // namespace

TEST_CASE("batch normalisation normalises each channel by its mean and variance") {
  for (auto type : floating)
    for (auto parameter_type : {dtype::f32, type})
      for (const auto& extents : batch_norm_shapes) {
        batch_norm_operands p(extents, type, parameter_type);
        auto expected = p.expected();
        auto [y, mean, rstd] = p.forward();
        require_close(y, expected.y());
        auto means = values_of(mean), rstds = values_of(rstd);
        for (std::size_t c = 0; c < expected.num_channels(); ++c) {
          CHECK(std::abs(means[c] - expected.mean[c]) < 1e-6);
          CHECK(std::abs(rstds[c] / expected.rstd(c) - 1) < 1e-6);
        }
        auto plain = expected;
        plain.weight.assign(plain.num_channels(), 1);
        plain.bias.assign(plain.num_channels(), 0);
        require_close(batch_norm_forward(p.x, {}, {}, {}, {}).y, plain.y());
      }
}

TEST_CASE("a mean far from zero does not change the variance") {
  auto x = tensor::full({4, 1, 100}, 1000);
  for (std::size_t i = 0; i < 400; i += 2) x.values<float>()[i] = 1000.25F;
  auto [y, mean, rstd] = batch_norm_forward(placed(x), {}, {}, {}, {}, {.epsilon = 0});
  CHECK(values_of(mean)[0] == 1000.125);
  CHECK(values_of(rstd)[0] == 8);
  CHECK(values_of(y)[0] == 1);
  CHECK(values_of(y)[1] == -1);
}

TEST_CASE("batch normalisation moves the running statistics by its momentum") {
  batch_norm_operands p({6, 3, 4, 5}, dtype::f32);
  auto mean = placed(tensor::full({3}, 0.5F)), variance = placed(tensor::full({3}, 2));
  auto expected = p.expected();
  batch_norm_forward(p.x, p.weight, p.bias, mean, variance, {.momentum = 0.25});
  auto expected_mean = expected.mean, expected_variance = expected.variance;
  for (auto& value : expected_mean) value = 0.75 * 0.5 + 0.25 * value;
  for (auto& value : expected_variance) value = 0.75 * 2 + 0.25 * value * 120 / 119;
  require_close(mean, exactly(expected_mean));
  require_close(variance, exactly(expected_variance));
}

TEST_CASE("in inference batch normalisation uses the running statistics") {
  for (auto type : floating)
    for (const auto& extents : batch_norm_shapes) {
      batch_norm_operands p(extents, type);
      auto mean = placed(random_tensor({extents[1]}, "mean")),
           variance = random_tensor({extents[1]}, "variance");
      for (auto& value : variance.values<float>()) value = value * value + 0.1F;
      variance = placed(variance);
      auto expected = p.expected();
      expected.mean = values_of(mean);
      expected.variance = values_of(variance);
      expected.epsilon = 0.01;
      require_close(batch_norm_inference(p.x, p.weight, p.bias, mean, variance, {.epsilon = 0.01}),
                    expected.y());
    }
  CHECK(batch_norm_inference(placed(tensor::empty({0, 2, 3})), {}, {}, placed(tensor::zeros({2})),
                             placed(tensor::zeros({2})))
            .num_elements() == 0);
}

TEST_CASE("batch normalisation's gradients follow the formulas, assigned or added") {
  for (auto type : floating)
    for (const auto& extents : batch_norm_shapes) {
      if (extents.num_elements() / extents[1] == 2) continue;  // of two elements nothing is left of dx
      batch_norm_operands p(extents, type);
      auto expected = p.expected();
      auto [y, mean, rstd] = p.forward();
      require_close(batch_norm_backward_input(p.dy, p.x, p.weight, mean, rstd), expected.dx());

      for (auto gradient_type : {dtype::f32, type}) {
        auto before = placed(rounded(random_tensor({extents[1]}, "before"), gradient_type));
        auto dw = before.clone(), db = before.clone();
        batch_norm_backward_weight(p.x, p.dy, mean, rstd, dw, db, gradient_mode::assign);
        require_close(dw, expected.dweight());
        require_close(db, expected.dbias());
        dw = before.clone();
        batch_norm_backward_weight(p.x, p.dy, mean, rstd, dw, {}, gradient_mode::accumulate);
        auto sums = expected.dweight();
        for (std::size_t c = 0; c < sums.size(); ++c) sums[c].add(values_of(before)[c]);
        require_close(dw, sums);
      }
    }
}

TEST_CASE("the reference gradients of batch normalisation are those of finite differences", "[host]") {
  for (const auto& extents : {shape{2, 3, 5, 7}, shape{7, 5}}) {
    auto expected = batch_norm_operands(extents, dtype::f32).expected();
    auto objective = [](batch_norm_reference reference_values) {
      reference_values.take_moments();
      double sum = 0;
      auto y = reference_values.y();
      for (std::size_t i = 0; i < y.size(); ++i) sum += reference_values.dy[i] * y[i].value;
      return sum;
    };
    auto difference = [&](std::vector<double> batch_norm_reference::*field, std::size_t at) {
      constexpr double step = 1e-5;
      auto above = expected, below = expected;
      (above.*field)[at] += step;
      (below.*field)[at] -= step;
      return (objective(above) - objective(below)) / (2 * step);
    };
    for (std::size_t at = 0; at < expected.x.size(); at += 7)
      CHECK(std::abs(difference(&batch_norm_reference::x, at) - expected.dx()[at].value) < 1e-6);
    for (std::size_t c = 0; c < expected.num_channels(); ++c) {
      CHECK(std::abs(difference(&batch_norm_reference::weight, c) - expected.dweight()[c].value) < 1e-6);
      CHECK(std::abs(difference(&batch_norm_reference::bias, c) - expected.dbias()[c].value) < 1e-6);
    }
  }
}

TEST_CASE("batch normalisation gives the same bits on any number of threads") {
  for (auto type : {dtype::f32, dtype::bf16}) {
    batch_norm_operands p({9, 13, 28, 29}, type);
    set_num_threads(1);
    auto [y, mean, rstd] = p.forward();
    auto dx = batch_norm_backward_input(p.dy, p.x, p.weight, mean, rstd);
    auto dw = placed(tensor::empty({13})), dw_again = placed(tensor::empty({13}));
    batch_norm_backward_weight(p.x, p.dy, mean, rstd, dw, {}, gradient_mode::assign);
    auto inferred = batch_norm_inference(p.x, p.weight, p.bias, mean, rstd);
    set_num_threads(3);
    CHECK(same_bits(p.forward().y, y));
    CHECK(same_bits(p.forward().rstd, rstd));
    CHECK(same_bits(batch_norm_backward_input(p.dy, p.x, p.weight, mean, rstd), dx));
    batch_norm_backward_weight(p.x, p.dy, mean, rstd, dw_again, {}, gradient_mode::assign);
    CHECK(same_bits(dw_again, dw));
    CHECK(same_bits(batch_norm_inference(p.x, p.weight, p.bias, mean, rstd), inferred));
    set_num_threads(1);
  }
}

TEST_CASE("batch normalisation names the argument that does not fit", "[host]") {
  auto x = tensor::zeros({2, 3, 4}), per_channel = tensor::zeros({3}), other = tensor::zeros({4});
  auto narrow = tensor::zeros({3}, dtype::bf16);
  CHECK_THROWS_WITH(batch_norm_forward({}, {}, {}, {}, {}),
                    ContainsSubstring("[batch_norm] expected x of f32"));
  CHECK_THROWS_WITH(batch_norm_forward(other, {}, {}, {}, {}), ContainsSubstring("x [N, C, ...]"));
  CHECK_THROWS_WITH(batch_norm_forward(x, other, per_channel, {}, {}),
                    ContainsSubstring("weight f32 or of x's dtype [3] for x f32[2, 3, 4], got f32[4]"));
  CHECK_THROWS_WITH(batch_norm_forward(x, per_channel, {}, {}, {}), ContainsSubstring("bias"));
  CHECK_THROWS_WITH(batch_norm_forward(x, narrow, per_channel, {}, {}), ContainsSubstring("weight"));
  CHECK_THROWS_WITH(batch_norm_forward(x, {}, {}, per_channel, {}), ContainsSubstring("running_variance"));
  CHECK_THROWS_WITH(batch_norm_forward(x, {}, {}, narrow, per_channel),
                    ContainsSubstring("running_mean f32[3]"));
  CHECK_THROWS_WITH(batch_norm_forward(tensor::zeros({1, 3}), {}, {}, {}, {}),
                    ContainsSubstring("at least two elements"));
  CHECK_THROWS_WITH(batch_norm_inference(x, {}, {}, {}, {}), ContainsSubstring("running_mean"));
  CHECK_THROWS_WITH(batch_norm_backward_input(tensor::zeros({2, 3}), x, {}, per_channel, per_channel),
                    ContainsSubstring("dy f32[2, 3, 4]"));
  CHECK_THROWS_WITH(batch_norm_backward_input(x, x, {}, per_channel, other),
                    ContainsSubstring("rstd f32[3]"));
  CHECK_THROWS_WITH(
      batch_norm_backward_weight(x, x, per_channel, per_channel, other, {}, gradient_mode::assign),
      ContainsSubstring("weight_gradient"));
  CHECK_THROWS_WITH(
      batch_norm_backward_weight(x, x, per_channel, per_channel, {}, other, gradient_mode::assign),
      ContainsSubstring("bias_gradient"));
}
