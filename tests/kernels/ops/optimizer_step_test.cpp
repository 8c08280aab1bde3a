#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/sgd_step.hpp"

using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

constexpr int num_steps = 7;
constexpr std::int64_t size = 37;

/// One weight's published update in f64: w from w, its gradient and the step from 0.
using exact_update = std::function<double(double w, double g, int step)>;

/// Runs `step` and, for each element, a fresh `exact()` over the same gradients.
void compare(const std::function<void(tensor w, tensor g, int step)>& step,
             const std::function<exact_update()>& exact) {
  auto weight = random_tensor({size}, "w");
  auto initial = weight.clone();
  std::vector<tensor> gradients;
  for (int t = 0; t < num_steps; ++t) {
    gradients.push_back(random_tensor({size}, std::to_string(t)));
    auto gradient = gradients.back().clone();
    step(weight, gradient, t);
    REQUIRE(same_bits(gradient, tensor::zeros({size})));
  }
  for (std::size_t i = 0; i < size; ++i) {
    auto update = exact();
    double w = initial.values<float>()[i];
    for (int t = 0; t < num_steps; ++t)
      w = update(w, gradients[static_cast<std::size_t>(t)].values<float>()[i], t);
    CHECK(std::abs(weight.values<float>()[i] - w) < 2e-6);
  }
}

void compare_sgd(const troupe::sgd_step_options& o) {
  auto buffer = tensor::zeros({size});
  compare([&](tensor w, tensor g, int) { troupe::sgd_step(w, g, buffer, o); },
          [&o] {
            return [o, m = 0.0](double w, double g, int step) mutable {
              g += o.weight_decay * w;
              if (o.momentum == 0) return w - o.learning_rate * g;
              m = step == 0 ? g : o.momentum * m + g;
              return w - o.learning_rate * (o.nesterov ? g + o.momentum * m : m);
            };
          });
}

void compare_adam(const troupe::adam_step_options& o) {
  auto exp_avg = tensor::zeros({size}), exp_avg_sq = tensor::zeros({size});
  compare(
      [&](tensor w, tensor g, int step) {
        troupe::adam_step(w, g, exp_avg, exp_avg_sq, static_cast<std::uint64_t>(step), o);
      },
      [&o] {
        return [o, m = 0.0, v = 0.0](double w, double g, int step) mutable {
          if (o.decoupled) w *= 1 - o.learning_rate * o.weight_decay;
          if (!o.decoupled) g += o.weight_decay * w;
          m = o.beta1 * m + (1 - o.beta1) * g;
          v = o.beta2 * v + (1 - o.beta2) * g * g;
          auto m_hat = m / (1 - std::pow(o.beta1, step + 1)), v_hat = v / (1 - std::pow(o.beta2, step + 1));
          return w - o.learning_rate * m_hat / (std::sqrt(v_hat) + o.epsilon);
        };
      });
}

}  // namespace

TEST_CASE("SGD follows its formula") {
  compare_sgd({.learning_rate = 0.1});
  compare_sgd({.learning_rate = 0.1, .weight_decay = 0.01});
  compare_sgd({.learning_rate = 0.05, .momentum = 0.9});
  compare_sgd({.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
}

TEST_CASE("Adam follows its formula") {
  compare_adam({});
  compare_adam({.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1});
}

TEST_CASE("AdamW shrinks the weights by themselves") {
  compare_adam({.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true});
}

TEST_CASE("the first step of Adam is the learning rate in the gradient's direction") {
  auto w = tensor::zeros({2}), g = tensor::from(std::vector<float>{1e-3F, -5}, {2});
  auto m = tensor::zeros({2}), v = tensor::zeros({2});
  troupe::adam_step(w, g, m, v, 0, {.learning_rate = 0.5});
  CHECK(std::abs(w.values<float>()[0] + 0.5) < 1e-5);
  CHECK(std::abs(w.values<float>()[1] - 0.5) < 1e-5);
}

TEST_CASE("state of another shape is refused") {
  auto w = tensor::zeros({3}), other = tensor::zeros({4});
  CHECK_THROWS_AS(troupe::sgd_step(w, other, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS(troupe::sgd_step(w, w.clone(), {}, {.momentum = 0.9}), std::invalid_argument);
  CHECK_THROWS_AS(troupe::adam_step(w, w.clone(), other, w.clone(), 0, {}), std::invalid_argument);
  CHECK_THROWS_AS(troupe::adam_step(w, w.clone(), w.clone(), other, 0, {}), std::invalid_argument);
}
