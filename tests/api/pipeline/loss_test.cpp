#include "troupe/nn/loss.hpp"
#include "api/pipeline/tested_programs.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/mse_loss.hpp"
#include "troupe/optim/sgd.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/pipeline/pipeline.hpp"

using namespace troupe;
using troupe::testing::random_tensor;

namespace {

constexpr std::size_t rows = 5, in = 3, out = 2;

/// A step of plain descent of the mean squared error over two microbatches, in f64.
std::vector<double> weight_after_step(const tensor& x, const tensor& weight, const tensor& target) {
  auto xs = x.values<float>(), ws = weight.values<float>(), ts = target.values<float>();
  std::vector<double> result(ws.begin(), ws.end());
  for (std::size_t row = 0; row < 2 * rows; ++row)
    for (std::size_t o = 0; o < out; ++o) {
      double difference = -double{ts[row * out + o]};
      for (std::size_t i = 0; i < in; ++i) difference += double{xs[row * in + i]} * ws[o * in + i];
      for (std::size_t i = 0; i < in; ++i)
        result[o * in + i] -= 2 * difference * xs[row * in + i] / (2 * rows * out);
    }
  return result;
}

void train_step(program::stage_program& program, const tensor& x, const tensor& target) {
  for (int index = 0; index < 2; ++index) {
    program::microbatch which{0, index, 2, true};
    program.forward(which, {x.rows(5 * index, 5)}, target.rows(5 * index, 5));
    program.backward_input(which, {});
    program.backward_weight(which);
  }
  program.apply(0);
}

}  // namespace

TEST_CASE("a stage minimizes the mean squared error over the elements of the global batch") {
  nn::Sequential model(nn::Linear(in, out, {.bias = false}));
  auto program = testing::programs_of(model, 1, {nn::MSELoss(), optim::SGD({.lr = 1}), 42})({.stage = 0});
  auto x = random_tensor({2 * rows, in}, "x"), target = random_tensor({2 * rows, out}, "target");
  auto weight = program->parameters().front().value;
  auto expected = weight_after_step(x, weight.to({}), target);
  train_step(*program, x, target);
  auto stepped = weight.to({});
  for (std::size_t i = 0; i < in * out; ++i) CHECK(std::abs(stepped.values<float>()[i] - expected[i]) < 1e-6);
  auto metrics = program->take_metrics();
  CHECK(metrics.num_samples == 2 * rows * out);
  CHECK(metrics.num_correct == 0);
  CHECK(metrics.loss_sum > 0);
}

TEST_CASE("any function of outputs and targets can be a loss") {
  nn::Sequential model(nn::Linear(in, out));
  auto x = random_tensor({2 * rows, in}, "x"), target = random_tensor({2 * rows, out}, "target");
  auto twice = [](const variable& output, const tensor& targets, double gradient_scale) {
    return nn::MSELoss()(output, targets, 2 * gradient_scale);
  };
  auto own = testing::programs_of(model, 1, {twice, optim::SGD({.lr = 0.5}), 42})({.stage = 0});
  auto known = testing::programs_of(model, 1, {nn::MSELoss(), optim::SGD({.lr = 1}), 42})({.stage = 0});
  train_step(*own, x, target);
  train_step(*known, x, target);
  CHECK(testing::same_bits(own->parameters(), known->parameters()));
}

TEST_CASE("a pipeline keeps its loss and refuses an empty one") {
  Pipeline pipeline{nn::Sequential(nn::Linear(in, out))};
  auto prediction = random_tensor({rows, out}, "prediction"), target = random_tensor({rows, out}, "target");
  pipeline.loss(nn::MSELoss());
  CHECK(pipeline.loss()({prediction}, target, 1).loss_sum == nn::MSELoss()({prediction}, target, 1).loss_sum);
  CHECK_THROWS_AS(pipeline.loss(nullptr), std::invalid_argument);
}
