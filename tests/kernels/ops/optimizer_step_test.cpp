#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"
#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/lamb_step.hpp"
#include "troupe/ops/sgd_step.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::adam_slot;
using troupe::dtype;
using troupe::sgd_slot;
using troupe::tensor;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::rounded_to;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

constexpr int num_steps = 7;
constexpr std::int64_t size = 37;

/// One weight's published update in f64: w from w, its gradient and the step from 0.
using exact_update = std::function<double(double w, double g, int step)>;

/// Runs `step` and, for each element, a fresh `exact()` over the same gradients.
void compare(const std::function<void(tensor w, tensor g, int step)>& step,
             const std::function<exact_update()>& exact) {
  auto weight = placed(random_tensor({size}, "w"));
  auto initial = weight.clone();
  std::vector<tensor> gradients;
  for (int t = 0; t < num_steps; ++t) {
    gradients.push_back(placed(random_tensor({size}, std::to_string(t))));
    auto gradient = gradients.back().clone();
    step(weight, gradient, t);
    REQUIRE(same_bits(gradient, gradients.back()));
  }
  auto got = values_of(weight), from = values_of(initial);
  for (std::size_t i = 0; i < size; ++i) {
    auto update = exact();
    auto w = from[i];
    for (int t = 0; t < num_steps; ++t)
      w = update(w, values_of(gradients[static_cast<std::size_t>(t)])[i], t);
    CHECK(std::abs(got[i] - w) < 2e-6);
  }
}

void compare_sgd(const troupe::sgd_step_options& o) {
  auto buffer = placed(tensor::zeros({size}));
  compare(
      [&](tensor w, tensor g, int) {
        troupe::sgd_step(std::vector<sgd_slot>{{w, g, buffer}}, o);
      },
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
  adam_slot slot{{}, {}, placed(tensor::zeros({size})), placed(tensor::zeros({size}))};
  compare(
      [&](tensor w, tensor g, int step) {
        slot.weight = w;
        slot.gradient = g;
        troupe::adam_step(std::span(&slot, 1), static_cast<std::uint64_t>(step), o);
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

/// LAMB's algorithm in f64 over whole tensors.
struct exact_lamb {
  troupe::lamb_step_options o;
  std::vector<double> m = std::vector<double>(size), v = m;

  void step(std::vector<double>& w, const std::vector<double>& gradient, int t) {
    std::vector<double> u(w.size());
    double weight_norm = 0, update_norm = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      auto g = gradient[i];
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      auto m_hat = m[i] / (1 - std::pow(o.beta1, t + 1)), v_hat = v[i] / (1 - std::pow(o.beta2, t + 1));
      u[i] = m_hat / (std::sqrt(v_hat) + o.epsilon) + o.weight_decay * w[i];
      weight_norm += w[i] * w[i];
      update_norm += u[i] * u[i];
    }
    auto trust = weight_norm > 0 && update_norm > 0 ? std::sqrt(weight_norm / update_norm) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= o.learning_rate * trust * u[i];
  }
};

void compare_lamb(const troupe::lamb_step_options& o, const tensor& initial) {
  auto weight = initial.clone();
  auto exact = values_of(initial);
  exact_lamb reference{o};
  adam_slot slot{weight, {}, placed(tensor::zeros({size})), placed(tensor::zeros({size}))};
  for (int t = 0; t < num_steps; ++t) {
    slot.gradient = placed(random_tensor({size}, std::to_string(t)));
    troupe::lamb_step(std::span(&slot, 1), static_cast<std::uint64_t>(t), o);
    reference.step(exact, values_of(slot.gradient), t);
  }
  auto got = values_of(weight);
  for (std::size_t i = 0; i < size; ++i) CHECK(std::abs(got[i] - exact[i]) < 3e-6);
}

/// Slots of odd sizes, one of them of several blocks and one of none, with their low-precision copies.
std::vector<adam_slot> some_slots() {
  std::vector<adam_slot> slots;
  for (std::int64_t elements : {3, 40'001, 0, 777, 16'384}) {
    auto name = std::to_string(elements);
    slots.push_back({placed(random_tensor({elements}, "w" + name)),
                     placed(random_tensor({elements}, "g" + name)), placed(tensor::zeros({elements})),
                     placed(tensor::zeros({elements})),
                     placed(tensor::zeros({elements}, slots.size() % 2 == 0 ? dtype::bf16 : dtype::f16))});
  }
  return slots;
}

std::vector<sgd_slot> as_sgd(const std::vector<adam_slot>& slots) {
  std::vector<sgd_slot> result;
  for (const auto& each : slots)
    result.push_back({each.weight, each.gradient, each.exp_avg, each.low_precision});
  return result;
}

/// The steps of all the optimizers over such slots.
const std::vector<std::function<void(const std::vector<adam_slot>&)>> all_steps{
    [](const auto& slots) { troupe::adam_step(slots, 2, {.weight_decay = 0.1, .decoupled = true}); },
    [](const auto& slots) { troupe::lamb_step(slots, 2, {.weight_decay = 0.1}); },
    [](const auto& slots) { troupe::sgd_step(as_sgd(slots), {}); },
    [](const auto& slots) { troupe::sgd_step(as_sgd(slots), {.momentum = 0.5}); },
    [](const auto& slots) { troupe::sgd_step(as_sgd(slots), {.momentum = 0.5, .nesterov = true}); }};

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
  compare_adam({.learning_rate = 0.01, .weight_decay = 0.1});
}

TEST_CASE("AdamW shrinks the weights by themselves") {
  compare_adam({.learning_rate = 0.01, .weight_decay = 0.1, .decoupled = true});
}

TEST_CASE("the first step of Adam is the learning rate in the gradient's direction") {
  auto w = placed(tensor::zeros({2})), g = placed(tensor::from(std::vector<float>{1e-3F, -5}, {2}));
  auto m = placed(tensor::zeros({2})), v = placed(tensor::zeros({2}));
  troupe::adam_step(std::vector<adam_slot>{{w, g, m, v}}, 0, {.learning_rate = 0.5});
  CHECK(std::abs(values_of(w)[0] + 0.5) < 1e-5);
  CHECK(std::abs(values_of(w)[1] - 0.5) < 1e-5);
}

TEST_CASE("LAMB follows its algorithm") {
  auto weights = placed(random_tensor({size}, "w"));
  compare_lamb({.learning_rate = 0.01}, weights);
  compare_lamb({.learning_rate = 0.02, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}, weights);
}

TEST_CASE("LAMB does not scale a step from zero weights") {
  compare_lamb({.learning_rate = 0.01}, placed(tensor::zeros({size})));
}

TEST_CASE("LAMB does not change weights if weights and gradients are zero") {
  auto w = placed(tensor::zeros({5}));
  troupe::lamb_step(std::vector<adam_slot>{{w, placed(tensor::zeros({5})), placed(tensor::zeros({5})),
                                            placed(tensor::zeros({5}))}},
                    0, {.weight_decay = 0.1});
  CHECK(same_bits(w, tensor::zeros({5})));
}

TEST_CASE("stepping many weights together gives the bits of stepping each by itself") {
  for (const auto& step : all_steps) {
    auto together = some_slots(), apart = some_slots();
    step(together);
    for (const auto& each : apart) step({each});
    for (std::size_t i = 0; i < apart.size(); ++i) {
      REQUIRE(same_bits(together[i].weight, apart[i].weight));
      REQUIRE(same_bits(together[i].exp_avg, apart[i].exp_avg));
      REQUIRE(same_bits(together[i].exp_avg_sq, apart[i].exp_avg_sq));
    }
  }
}

TEST_CASE("the low-precision copy is the new weight, rounded") {
  for (const auto& step : all_steps) {
    auto slots = some_slots();
    step(slots);
    for (const auto& each : slots)
      REQUIRE(same_bits(each.low_precision,
                        rounded_to(values_of(each.weight), each.weight.shape(), each.low_precision.dtype())));
  }
}

TEST_CASE("optimizer steps give the same bits on any number of threads") {
  for (const auto& step : all_steps)
    troupe::testing::require_same_bits_on_threads([&] {
      auto slots = some_slots();
      step(slots);
      std::vector<tensor> written;
      for (const auto& each : slots)
        written.insert(written.end(), {each.weight, each.exp_avg, each.exp_avg_sq, each.low_precision});
      return written;
    });
}

TEST_CASE("a step over no weights does nothing", "[host]") {
  for (const auto& step : all_steps) step({});
}

TEST_CASE("optimizer steps refuse slots that do not fit", "[host]") {
  auto w = tensor::zeros({3}), other = tensor::zeros({4}), low = tensor::zeros({3}, dtype::bf16);
  auto adam = [](adam_slot slot) { troupe::adam_step(std::vector{slot}, 0, {}); };
  auto sgd = [](sgd_slot slot) { troupe::sgd_step(std::vector{slot}, {.momentum = 0.9}); };
  CHECK_THROWS_WITH(adam({low, low, low, low}),
                    ContainsSubstring("[adam_step] expected weight f32[3], got bf16[3]"));
  CHECK_THROWS_WITH(adam({}), ContainsSubstring("[adam_step] expected weight"));
  CHECK_THROWS_WITH(adam({w, other, w, w}),
                    ContainsSubstring("[adam_step] expected gradient f32[3], got f32[4]"));
  CHECK_THROWS_WITH(adam({w, w, other, w}), ContainsSubstring("expected exp_avg f32[3], got f32[4]"));
  CHECK_THROWS_WITH(adam({w, w, w, other}), ContainsSubstring("expected exp_avg_sq f32[3], got f32[4]"));
  CHECK_THROWS_WITH(
      adam({w, w, w, w, w}),
      ContainsSubstring("expected low_precision of bf16 or f16 like weight f32[3], got f32[3]"));
  CHECK_THROWS_AS(adam({other, other, other, other, low}), std::invalid_argument);
  CHECK_THROWS_WITH(sgd({w, other, w}), ContainsSubstring("[sgd_step] expected gradient f32[3], got f32[4]"));
  CHECK_THROWS_WITH(sgd({w, w}), ContainsSubstring("[sgd_step] expected momentum_buffer f32[3]"));
  CHECK_THROWS_WITH(sgd({w, w, w, other}), ContainsSubstring("[sgd_step] expected low_precision"));
  CHECK_THROWS_WITH(troupe::lamb_step(std::vector<adam_slot>{{w, w, other, w}}, 0, {}),
                    ContainsSubstring("[lamb_step] expected exp_avg"));
}
