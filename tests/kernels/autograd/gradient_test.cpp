#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "support/random_tensor.hpp"
#include "troupe/autograd/functions.hpp"

using troupe::parameter;
using troupe::tensor;
using troupe::testing::random_tensor;

namespace {

constexpr std::size_t batch = 3, in = 4, hidden = 5, classes = 3;
constexpr double loss_scale = 0.5;
const std::vector<std::int64_t> labels{2, 0, 1};

using numbers = std::vector<double>;

/// y[b][o] = sum_i x[b][i] weight[o][i] + bias[o], in f64.
numbers reference_linear(const numbers& x, const numbers& weight, const numbers& bias) {
  auto width = weight.size() / bias.size();
  numbers y;
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t o = 0; o < bias.size(); ++o) {
      auto sum = bias[o];
      for (std::size_t i = 0; i < width; ++i) sum += x[b * width + i] * weight[o * width + i];
      y.push_back(sum);
    }
  return y;
}

/// The scaled loss of linear, relu, linear with weights w[1], w[2], w[3], w[4] and input w[0], in f64.
double reference_loss(const std::vector<numbers>& w) {
  auto activations = reference_linear(w[0], w[1], w[2]);
  for (auto& each : activations) each = std::fmax(each, 0);
  auto logits = reference_linear(activations, w[3], w[4]);
  double loss = 0;
  for (std::size_t b = 0; b < batch; ++b) {
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits[b * classes + c]);
    loss += std::log(sum) - logits[b * classes + static_cast<std::size_t>(labels[b])];
  }
  return loss_scale * loss;
}

numbers values_of(const tensor& from) {
  auto values = from.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("gradients of a small network are those of finite differences in f64") {
  auto make = [](const std::string& name, troupe::shape extents) {
    return parameter{name, random_tensor(extents, name), tensor::zeros(extents)};
  };
  auto x = random_tensor({batch, 2, 2}, "x");
  auto w1 = make("w1", {hidden, in}), b1 = make("b1", {hidden}), w2 = make("w2", {classes, hidden}),
       b2 = make("b2", {classes});
  auto input = troupe::leaf(x);
  auto logits = linear(relu(linear(flatten(input), w1, &b1)), w2, &b2);
  auto result = cross_entropy(logits, tensor::from(labels, {batch}), loss_scale);
  result.loss.backward();
  auto dx = input.gradient();
  CHECK(dx.shape() == x.shape());

  std::vector<numbers> point{values_of(x), values_of(w1.value()), values_of(b1.value()),
                             values_of(w2.value()), values_of(b2.value())};
  CHECK(std::abs(result.loss.value.values<float>()[0] - reference_loss(point)) < 1e-6);
  std::vector<numbers> gradients{values_of(dx), values_of(w1.gradient()), values_of(b1.gradient()),
                                 values_of(w2.gradient()), values_of(b2.gradient())};
  constexpr double delta = 1e-6;
  for (std::size_t which = 0; which < point.size(); ++which)
    for (std::size_t i = 0; i < point[which].size(); ++i) {
      auto up = point, down = point;
      up[which][i] += delta;
      down[which][i] -= delta;
      auto expected = (reference_loss(up) - reference_loss(down)) / (2 * delta);
      CHECK(std::abs(gradients[which][i] - expected) < 1e-6);
    }
}

TEST_CASE("a gradient given to the loss multiplies all others") {
  auto run = [](const tensor& seed) {
    auto logits = troupe::leaf(random_tensor({batch, classes}, "logits"));
    cross_entropy(logits, tensor::from(labels, {batch}), loss_scale).loss.backward(seed);
    return values_of(logits.gradient());
  };
  auto once = run({}), twice = run(tensor::full({}, 2));
  for (std::size_t i = 0; i < once.size(); ++i) CHECK(twice[i] == 2 * once[i]);
  CHECK_THROWS_AS(run(tensor::zeros({2})), std::invalid_argument);
}

TEST_CASE("bytes are converted to floats only if no gradient of them is required") {
  auto bytes = tensor::zeros({2, 3}, troupe::dtype::u8);
  auto x = to_float(troupe::variable{bytes, nullptr}, 1);
  CHECK(x.value.dtype() == troupe::dtype::f32);
  CHECK_FALSE(x.requires_gradient());
  CHECK_THROWS_AS(to_float(troupe::leaf(bytes), 1), std::invalid_argument);
}

TEST_CASE("a scalar cannot be flattened") {
  CHECK_THROWS_AS(flatten(troupe::variable{tensor::zeros({}), nullptr}), std::invalid_argument);
}
