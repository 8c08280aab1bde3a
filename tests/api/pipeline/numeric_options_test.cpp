#include "troupe/pipeline/numeric_options.hpp"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "api/pipeline/pipeline.hpp"
#include "support/bits.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/optim/sgd.hpp"
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/random/fill.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::named_tensor;
using troupe::numeric_options;
using troupe::partition_into_stages;
using troupe::tensor;
using troupe::detail::reductions_of;
using troupe::detail::stage_reductions;
using troupe::testing::forward_of;
using troupe::testing::four_layer_model;
using troupe::testing::input_gradient_of;
using troupe::testing::pipeline;
using troupe::testing::same_bits;

namespace {

const troupe::optim::Optimizer sgd = troupe::optim::SGD({.lr = 1});

pipeline with(int num_stages, const numeric_options& numerics, troupe::optim::Optimizer optimizer = sgd) {
  return pipeline(num_stages, std::move(optimizer), four_layer_model(), numerics);
}

/// The step of plain gradient descent at rate 1: minus the gradient.
std::vector<tensor> steps_of(pipeline model) {
  auto before = model.parameters();
  model.train_step(0);
  auto after = model.parameters();
  std::vector<tensor> steps;
  for (std::size_t i = 0; i < before.size(); ++i) {
    auto step = after[i].value.clone();
    for (std::size_t j = 0; j < step.values<float>().size(); ++j)
      step.values<float>()[j] -= before[i].value.values<float>()[j];
    steps.push_back(step);
  }
  return steps;
}

float scale_of(pipeline& model, int stage) {
  for (const auto& [name, value] : model.at(stage).state())
    if (name == "loss_scaler/scale") return value.values<float>()[0];
  throw std::logic_error("no loss scale");
}

/// A step in whose second microbatch stage 0 sees a gradient that is no number.
void bad_step(pipeline& model, std::uint64_t step) {
  for (int index = 0; index < troupe::testing::num_microbatches; ++index) model.forward(step, index);
  for (int index = 0; index < troupe::testing::num_microbatches; ++index) {
    tensor gradient;
    for (auto stage = model.stages.rbegin(); stage != model.stages.rend(); ++stage) {
      if (stage + 1 == model.stages.rend() && index == 1) {
        gradient = gradient.to({}).clone();
        gradient.bytes()[0] = gradient.bytes()[1] = std::byte{0xff};
        gradient.bytes()[2] = gradient.bytes()[3] = std::byte{0xff};
      }
      gradient = input_gradient_of(**stage, pipeline::which(step, index), gradient);
      (*stage)->backward_weight(pipeline::which(step, index));
    }
  }
  model.apply(step);
}

}  // namespace

TEST_CASE("the partition changes no bit in any precision, with clipping and without") {
  auto precision = GENERATE(dtype::f32, dtype::bf16, dtype::f16);
  auto max_norm = GENERATE(0.0, 0.05);
  numeric_options numerics{.precision = precision, .clip_grad_norm = max_norm};
  auto train = [&](int num_stages) {
    auto model = with(num_stages, numerics, troupe::optim::Adam({.lr = 0.01}));
    for (std::uint64_t step = 0; step < 4; ++step) model.train_step(step);
    CHECK(model.take_metrics().loss_sum > 0);
    return model.parameters();
  };
  auto whole = train(1);
  for (int stages : {2, 3, 4}) CHECK(same_bits(train(stages), whole));
}

TEST_CASE("a 16-bit precision is close to f32, and activations are sent in it") {
  for (auto precision : {dtype::bf16, dtype::f16}) {
    auto exact = steps_of(with(1, {})), narrow = steps_of(with(1, {.precision = precision}));
    for (std::size_t i = 0; i < exact.size(); ++i) {
      CHECK_FALSE(same_bits(exact[i], narrow[i]));
      auto difference = exact[i].clone();
      for (std::size_t j = 0; j < difference.values<float>().size(); ++j)
        difference.values<float>()[j] -= narrow[i].values<float>()[j];
      CHECK(troupe::global_norm(std::span(&difference, 1)) <
            0.05 * troupe::global_norm(std::span(&exact[i], 1)) + 1e-4);
    }
    auto model = with(2, {.precision = precision});
    auto mb = pipeline::which(0, 0);
    auto output = forward_of(model.at(0), mb, troupe::testing::make_images(0, 0), {});
    CHECK(output.dtype() == precision);
    forward_of(model.at(1), mb, output, troupe::testing::make_labels(0, 0));
    CHECK(input_gradient_of(model.at(1), mb, {}).dtype() == precision);
    for (const auto& each : model.parameters()) CHECK(each.value.dtype() == dtype::f32);
  }
}

TEST_CASE("clipping scales all stages' gradients by the norm over all of them") {
  auto plain = steps_of(with(4, {}));
  auto norm = troupe::global_norm(plain);
  REQUIRE(norm > 0.1);
  auto clipped = steps_of(with(4, {.clip_grad_norm = norm / 2}));
  CHECK(std::abs(troupe::global_norm(clipped) - norm / 2) < 1e-4 * norm);
  for (std::size_t i = 0; i < plain.size(); ++i)
    for (std::size_t j = 0; j < plain[i].values<float>().size(); ++j)
      CHECK(std::abs(clipped[i].values<float>()[j] - plain[i].values<float>()[j] / 2) < 1e-5);
  auto loose = steps_of(with(4, {.clip_grad_norm = 2 * norm}));
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(same_bits(loose[i], plain[i]));
}

TEST_CASE("a power of two as loss scale changes only values that would underflow, and the norm is unscaled") {
  numeric_options small{.precision = dtype::f16, .loss_scale = {.initial_scale = 1024}}, large = small;
  large.loss_scale.initial_scale = 2048;
  auto a = steps_of(with(2, small)), b = steps_of(with(2, large));
  CHECK(std::abs(troupe::global_norm(a) - troupe::global_norm(b)) < 1e-3 * troupe::global_norm(a));
  auto norm = troupe::global_norm(a);
  small.clip_grad_norm = norm / 4;
  CHECK(std::abs(troupe::global_norm(steps_of(with(2, small))) - norm / 4) < 1e-3 * norm);
}

TEST_CASE(
    "a step whose gradients overflow in one stage is skipped by all, and the scale goes down everywhere") {
  numeric_options numerics{.precision = dtype::f16};
  auto model = with(3, numerics, troupe::optim::Adam({.lr = 0.01}));
  auto before = model.parameters();
  bad_step(model, 0);
  CHECK(same_bits(model.parameters(), before));
  for (int stage : {0, 1, 2}) CHECK(scale_of(model, stage) == 32768);

  // It goes on as if the skipped step had not been, at the smaller scale.
  model.train_step(1);
  numerics.loss_scale.initial_scale = 32768;
  auto expected = with(3, numerics, troupe::optim::Adam({.lr = 0.01}));
  for (int index = 0; index < troupe::testing::num_microbatches; ++index) {
    expected.forward(pipeline::which(0, index), troupe::testing::make_images(1, index),
                     troupe::testing::make_labels(1, index));
    expected.backward(0, index);
  }
  expected.apply(0);
  CHECK(same_bits(model.parameters(), expected.parameters()));
}

TEST_CASE("the loss scale is part of a stage's state") {
  numeric_options numerics{.precision = dtype::f16, .loss_scale = {.growth_interval = 3}};
  auto continued = with(2, numerics), restored = with(2, numerics);
  bad_step(continued, 0);
  continued.train_step(1);
  for (int stage : {0, 1}) {
    std::vector<named_tensor> saved;
    for (const auto& [name, value] : continued.at(stage).state()) saved.push_back({name, value.clone()});
    restored.at(stage).load_state(saved);
  }
  for (std::uint64_t step = 2; step < 6; ++step) {
    continued.train_step(step);
    restored.train_step(step);
  }
  CHECK(same_bits(continued.parameters(), restored.parameters()));
  CHECK(scale_of(restored, 1) == 65536);
  CHECK_FALSE(with(2, {.precision = dtype::bf16}).at(0).state().back().name.starts_with("loss_scaler"));
}

TEST_CASE("a step without the reductions that it needs is refused") {
  auto model = with(1, {.clip_grad_norm = 1});
  for (int index = 0; index < troupe::testing::num_microbatches; ++index) {
    model.forward(0, index);
    model.backward(0, index);
  }
  CHECK_THROWS_AS(model.at(0).apply(0), std::logic_error);
  CHECK_THROWS_AS(model.at(0).partial_for_reduction(7), std::logic_error);
  CHECK_THROWS_AS(model.at(0).reduce(0, {tensor::zeros({2})}), std::runtime_error);
  CHECK_THROWS_AS(with(1, {}).at(0).partial_for_reduction(0), std::logic_error);
}

TEST_CASE("without tied weights, clipping and loss scale there are no reductions") {
  auto model = four_layer_model();
  auto partition = partition_into_stages(model, 3);
  CHECK(troupe::detail::reductions_of(model, partition, {}).all.empty());
  CHECK(troupe::detail::reductions_of(model, partition, {.precision = dtype::bf16}).all.empty());
  auto clipped = troupe::detail::reductions_of(model, partition, {.clip_grad_norm = 1});
  CHECK(clipped.all == std::vector<troupe::schedule::reduction>{{0, 1, 2}});
  CHECK(clipped.norms == 0);
  CHECK(clipped.tied == stage_reductions::none);
  CHECK(troupe::detail::reductions_of(model, partition, {.precision = dtype::f16}).norms == 0);
}

TEST_CASE("squares are added up in the order of parameters and blocks, from whomever they come", "[host]") {
  using troupe::optim::detail::combined_norm;
  auto blocks = [](std::int64_t parameter, std::int64_t first, const std::vector<double>& sums) {
    std::vector<std::int64_t> numbers{parameter, first, static_cast<std::int64_t>(sums.size())};
    for (double sum : sums) numbers.push_back(std::bit_cast<std::int64_t>(sum));
    return tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())});
  };
  auto a = blocks(0, 0, {1e16}), b = blocks(1, 0, {1, 1e16, 3}), c = blocks(2, 0, {1e16});
  auto whole = combined_norm({a, b, c});
  CHECK(combined_norm({c, a, b}) == whole);
  CHECK(combined_norm({blocks(1, 2, {3}), c, blocks(1, 0, {1, 1e16}), a}) == whole);
  CHECK(combined_norm({blocks(0, 0, {9}), blocks(1, 0, {16}), blocks(2, 0, {})}) == 5);
  CHECK(std::isinf(combined_norm({a, blocks(1, 0, {std::numeric_limits<double>::infinity()})})));
  CHECK_THROWS_AS(combined_norm({tensor::zeros({3})}), std::runtime_error);
  auto of = [](const std::vector<std::int64_t>& numbers) {
    return tensor::from(numbers, {static_cast<std::int64_t>(numbers.size())});
  };
  CHECK_THROWS_AS(combined_norm({of({0, 0})}), std::runtime_error);
  CHECK_THROWS_AS(combined_norm({of({0, 0, 2, 5})}), std::runtime_error);
  CHECK_THROWS_AS(combined_norm({of({0, 0, -1})}), std::runtime_error);
}

TEST_CASE("the norm from squares of blocks has the bits of one of whole gradients", "[host]") {
  std::vector<troupe::parameter> parameters;
  for (std::int64_t size : {1, 16'383, 16'384, 16'385, 70'001}) {
    auto gradient = tensor::empty({size});
    troupe::fill_uniform(gradient, -1, 1, 7, std::to_string(size));
    parameters.emplace_back("p", tensor::zeros({size}), gradient).has_gradient = true;
  }
  std::vector<troupe::optim::detail::indexed_parameter> counted;
  double squares = 0;
  for (const auto& each : parameters) {
    auto norm = troupe::global_norm(std::span(&each.gradient(), 1));
    squares += norm * norm;
    counted.push_back({static_cast<std::int64_t>(counted.size()), &each});
  }
  CHECK(troupe::optim::detail::combined_norm({troupe::optim::detail::gradient_squares(counted)}) ==
        std::sqrt(squares));
}

TEST_CASE("a pipeline refuses impossible precisions, norms and scales", "[host]") {
  troupe::Pipeline described(four_layer_model());
  CHECK_THROWS_WITH(described.precision(dtype::i64), ContainsSubstring("i64") && ContainsSubstring("bf16"));
  CHECK_THROWS_AS(described.clip_grad_norm(-1), troupe::bad_input);
  CHECK_THROWS_AS(described.clip_grad_norm(std::numeric_limits<double>::infinity()), troupe::bad_input);
  CHECK_THROWS_AS(described.loss_scale({.initial_scale = 0}), std::invalid_argument);
  CHECK(described.precision(dtype::bf16).clip_grad_norm(2).numerics().clip_grad_norm == 2);
  CHECK(described.numerics().precision == dtype::bf16);
}
