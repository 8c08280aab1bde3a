#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "api/pipeline/pipeline.hpp"
#include "support/bits.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/reshape.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/optim/sgd.hpp"

using troupe::cast;
using troupe::dtype;
using troupe::non_finite_policy;
using troupe::numeric_options;
using troupe::tensor;
using troupe::testing::four_layer_model;
using troupe::testing::input_gradient_of;
using troupe::testing::num_microbatches;
using troupe::testing::pipeline;
using troupe::testing::same_bits;

namespace {

pipeline with(const numeric_options& numerics) {
  return pipeline(2, troupe::optim::SGD({.lr = 0.1}), four_layer_model(), numerics);
}

/// A step up to its reductions, in whose last microbatch the gradient between the stages is NaN.
void bad_gradients(pipeline& model, std::uint64_t step) {
  for (int index = 0; index < num_microbatches; ++index) model.forward(step, index);
  for (int index = 0; index < num_microbatches; ++index) {
    auto which = pipeline::which(step, index);
    auto gradient = input_gradient_of(model.at(1), which, {});
    model.at(1).backward_weight(which);
    if (index + 1 == num_microbatches)
      gradient = cast(tensor::full(gradient.shape(), std::nanf("")), gradient.dtype());
    input_gradient_of(model.at(0), which, gradient);
    model.at(0).backward_weight(which);
  }
}

}  // namespace

TEST_CASE("the first parameter whose gradient is NaN is named, by its stage only") {
  for (auto max_norm : {0.0, 1.0}) {
    auto model = with({.clip_grad_norm = max_norm});
    bad_gradients(model, 0);
    if (max_norm > 0)
      for (int stage : {0, 1})
        model.at(stage).reduce(0,
                               {model.at(0).partial_for_reduction(0), model.at(1).partial_for_reduction(0)});
    CHECK(model.at(0).non_finite() == "the gradient of 2.bias");
    CHECK(model.at(1).non_finite().empty());
  }
}

TEST_CASE("nothing is named in a step whose values are finite") {
  for (auto policy : {non_finite_policy::stop, non_finite_policy::skip, non_finite_policy::go_on}) {
    auto model = with({.on_non_finite = policy});
    model.train_step(0);
    for (auto& stage : model.stages) CHECK(stage->non_finite().empty());
  }
}

TEST_CASE("a loss that is not finite is named by the last stage") {
  auto model = with({});
  auto images = troupe::testing::make_images(0, 0);
  for (auto& [name, value] : model.at(1).parameters()) {
    auto broken = value.to({}).clone();
    broken.values<float>()[0] = std::nanf("");
    value.copy_from(broken);
  }
  model.forward(pipeline::which(0, 0), images, troupe::testing::make_labels(0, 0));
  CHECK(model.at(1).non_finite() == "the loss");
}

TEST_CASE("a step whose gradients are not finite is skipped on all stages, and does not count") {
  const numeric_options numerics{.on_non_finite = non_finite_policy::skip};
  auto model = with(numerics), undisturbed = with(numerics);
  auto before = model.parameters();
  bad_gradients(model, 0);
  model.apply(0);
  CHECK(same_bits(model.parameters(), before));
  for (std::uint64_t step : {1, 2}) {
    model.train_step(step);
    undisturbed.train_step(step);
  }
  CHECK(same_bits(model.parameters(), undisturbed.parameters()));
}

TEST_CASE("a step that is skipped leaves the running statistics as they were before it") {
  for (auto precision : {dtype::f32, dtype::f16}) {
    const numeric_options numerics{
        .precision = precision, .loss_scale = {.initial_scale = 8}, .on_non_finite = non_finite_policy::skip};
    troupe::nn::Sequential layers(troupe::nn::Linear(12, 8), troupe::nn::Reshape({8, 1, 1}),
                                  troupe::nn::BatchNorm2d(8), troupe::nn::Flatten(),
                                  troupe::nn::Linear(8, troupe::testing::num_classes));
    auto make = [&] { return pipeline(2, troupe::optim::SGD({.lr = 0.1}), layers, numerics); };
    auto model = make(), undisturbed = make();
    auto step = [](pipeline& of, std::uint64_t number, float first) {
      for (int index = 0; index < num_microbatches; ++index) {
        auto samples = troupe::testing::random_tensor({troupe::testing::microbatch_size, 12},
                                                      std::to_string(number) + "/" + std::to_string(index));
        if (index == 0) samples.values<float>()[0] = first;
        of.forward(pipeline::which(number, index), samples, troupe::testing::make_labels(number, index));
      }
      for (int index = 0; index < num_microbatches; ++index) of.backward(number, index);
      of.apply(number);
    };
    auto weights = [](pipeline& of) {
      std::vector<troupe::named_tensor> all;
      for (auto& stage : of.stages)
        for (auto& each : stage->weights()) all.push_back({each.name, each.value.clone()});
      return all;
    };
    step(model, 0, 0.5F);
    step(undisturbed, 0, 0.5F);
    auto before = weights(model);
    step(model, 1, std::nanf(""));
    CHECK(same_bits(weights(model), before));
    if (precision == dtype::f16) continue;  // whose loss scale is another now
    step(model, 2, 0.25F);
    step(undisturbed, 2, 0.25F);
    CHECK(same_bits(weights(model), weights(undisturbed)));
    CHECK_FALSE(same_bits(weights(model), before));
  }
}

TEST_CASE("the number of skipped steps is part of a stage's state") {
  auto model = with({.on_non_finite = non_finite_policy::skip});
  bad_gradients(model, 0);
  model.apply(0);
  for (auto& stage : model.stages) {
    auto state = stage->state();
    REQUIRE(state.back().name == "skipped_steps");
    CHECK(state.back().value.values<std::int64_t>()[0] == 1);
  }
}

TEST_CASE("with the policy go_on no value is reported, and weights become NaN") {
  auto model = with({.on_non_finite = non_finite_policy::go_on});
  bad_gradients(model, 0);
  CHECK(model.at(0).non_finite().empty());
  model.apply(0);
  auto is_nan = [](float value) { return std::isnan(value); };
  auto all = model.parameters();
  CHECK(std::ranges::any_of(all, [&](const auto& each) {
    return std::ranges::any_of(each.value.template values<float>(), is_nan);
  }));
}

TEST_CASE("steps that loss scaling skips are not reported as non-finite") {
  auto model = with({.precision = dtype::f16, .loss_scale = {.initial_scale = 1e30}});
  for (int index = 0; index < num_microbatches; ++index) model.forward(0, index);
  for (int index = 0; index < num_microbatches; ++index) model.backward(0, index);
  for (int stage : {0, 1})
    model.at(stage).reduce(0, {model.at(0).partial_for_reduction(0), model.at(1).partial_for_reduction(0)});
  for (auto& stage : model.stages) CHECK(stage->non_finite().empty());
}

namespace {

/// Trains with gradients that are NaN until a value is reported, or the steps are over;
/// says how many were applied.
struct bad_steps {
  int count = 0;
  bool is_reported = false;
};
bad_steps train_with_bad_gradients(pipeline& model, int most) {
  for (int step = 0; step < most; ++step) {
    bad_gradients(model, static_cast<std::uint64_t>(step));
    std::vector<tensor> norms{model.at(0).partial_for_reduction(0), model.at(1).partial_for_reduction(0)};
    for (int stage : {0, 1}) model.at(stage).reduce(0, norms);
    if (!model.at(0).non_finite().empty() || !model.at(1).non_finite().empty()) return {step, true};
    for (int stage : {0, 1}) model.at(stage).apply(static_cast<std::uint64_t>(step));
  }
  return {most, false};
}

}  // namespace

TEST_CASE("gradients that stay NaN in f16 are reported when the loss scale is the least") {
  for (auto policy : {non_finite_policy::stop, non_finite_policy::skip}) {
    auto model = with({.precision = dtype::f16, .loss_scale = {.initial_scale = 8}, .on_non_finite = policy});
    auto before = model.parameters();
    auto [count, is_reported] = train_with_bad_gradients(model, 10);
    CHECK(is_reported);
    CHECK(count == 3);
    CHECK(model.at(0).non_finite() == "the gradient of 2.bias");
    CHECK(same_bits(model.parameters(), before));
  }
}

TEST_CASE("after any number of NaN steps in f16 a good one steps the weights as if it were the first") {
  const numeric_options numerics{
      .precision = dtype::f16, .loss_scale = {.initial_scale = 1}, .on_non_finite = non_finite_policy::go_on};
  auto model = with(numerics), undisturbed = with(numerics);
  CHECK_FALSE(train_with_bad_gradients(model, 200).is_reported);
  model.train_step(200);
  undisturbed.train_step(200);
  CHECK(same_bits(model.parameters(), undisturbed.parameters()));
}
