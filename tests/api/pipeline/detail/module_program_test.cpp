#include "troupe/pipeline/detail/module_program.hpp"
#include "api/pipeline/tested_programs.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <stdexcept>

#include "api/pipeline/pipeline.hpp"
#include "support/bits.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/optim/sgd.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::tensor;
using troupe::testing::input_gradient_of;
using troupe::testing::make_images;
using troupe::testing::make_labels;
using troupe::testing::microbatch_size;
using troupe::testing::num_microbatches;
using troupe::testing::pipeline;
using troupe::testing::same_bits;

namespace {

std::vector<troupe::named_tensor> copies(const std::vector<troupe::named_tensor>& live) {
  std::vector<troupe::named_tensor> result;
  for (const auto& [name, value] : live) result.push_back({name, value.clone()});
  return result;
}

}  // namespace

TEST_CASE("the state lists parameters, then the optimizer's state, each in name order") {
  pipeline model(4);
  std::vector<std::string> names;
  for (const auto& each : model.stages[1]->state()) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"4.bias", "4.weight", "4.bias/exp_avg", "4.bias/exp_avg_sq",
                                          "4.bias/step", "4.weight/exp_avg", "4.weight/exp_avg_sq",
                                          "4.weight/step"});
}

TEST_CASE("a step interrupted and discarded leaves no trace") {
  pipeline interrupted(4), expected(4);
  interrupted.train_step(0);
  expected.train_step(0);
  interrupted.forward(1, 0);
  interrupted.backward(1, 0);
  interrupted.forward(1, 1);
  interrupted.backward_input(1, 1);
  interrupted.forward(1, 2);
  for (auto& stage : interrupted.stages) stage->discard();
  CHECK(interrupted.take_metrics() == troupe::program::step_metrics());
  interrupted.train_step(1);
  expected.train_step(1);
  CHECK(same_bits(interrupted.parameters(), expected.parameters()));
}

TEST_CASE("a new stage continues from a saved state with the same bits") {
  pipeline continued(2), restored(2);
  continued.train_step(0);
  continued.train_step(1);
  for (std::size_t stage = 0; stage < 2; ++stage)
    restored.stages[stage]->load_state(copies(continued.stages[stage]->state()));
  continued.train_step(2);
  restored.train_step(2);
  CHECK(same_bits(continued.parameters(), restored.parameters()));
}

TEST_CASE("a state that does not fit is refused by name and nothing is loaded") {
  pipeline model(4);
  auto& stage = *model.stages[0];
  auto before = copies(stage.state());
  auto load = [&](auto change) {
    auto saved = copies(before);
    saved[0].value.bytes()[0] = std::byte{0x55};
    change(saved);
    stage.load_state(saved);
  };
  CHECK_THROWS_WITH(load([](auto& saved) { saved.pop_back(); }),
                    ContainsSubstring("missing tensor 2.weight/step"));
  CHECK_THROWS_WITH(load([](auto& saved) {
                      saved.push_back({"9.weight", tensor::zeros({1})});
                    }),
                    ContainsSubstring("unknown tensor 9.weight"));
  CHECK_THROWS_WITH(load([](auto& saved) {
                      saved[1].value = tensor::zeros({1, 2});
                    }),
                    ContainsSubstring("2.weight is f32[1, 2], expected f32[17, 12]"));
  CHECK_THROWS_WITH(load([](auto& saved) { saved.push_back(saved[0]); }),
                    ContainsSubstring("there twice: 2.bias"));
  CHECK_THROWS_AS(load([](auto& saved) { saved.clear(); }), std::runtime_error);
  CHECK(same_bits(stage.state(), before));
}

TEST_CASE("weight gradients may be computed in descending order, in any cut, with bits of their own") {
  auto train = [](int num_stages, bool descends) {
    pipeline model(num_stages);
    for (int i = 0; i < num_microbatches; ++i) model.forward(0, i);
    for (int i = 0; i < num_microbatches; ++i) {
      auto mb = pipeline::which(0, descends ? num_microbatches - 1 - i : i);
      mb.gradients_descend = descends;
      tensor gradient;
      for (auto stage = model.stages.rbegin(); stage != model.stages.rend(); ++stage) {
        gradient = input_gradient_of(**stage, mb, gradient);
        (*stage)->backward_weight(mb);
      }
    }
    for (auto& stage : model.stages) stage->apply(0);
    return copies(model.parameters());
  };
  auto expected = train(1, true);
  CHECK(same_bits(train(4, true), expected));
  CHECK_FALSE(same_bits(train(1, false), expected));

  pipeline model(1);
  auto mb = pipeline::which(0, 1);
  mb.gradients_descend = true;
  model.forward(0, 1);
  model.forward(0, 2);
  input_gradient_of(*model.stages[0], mb, {});
  model.stages[0]->backward_weight(mb);
  mb.index = 2;
  input_gradient_of(*model.stages[0], mb, {});
  CHECK_THROWS_WITH(model.stages[0]->backward_weight(mb),
                    ContainsSubstring("expected a microbatch before 1"));
}

TEST_CASE("evaluation returns its metrics, saves no activations and changes no weights") {
  pipeline model(4), expected(4);
  model.train_step(0);
  expected.train_step(0);
  auto training = model.take_metrics();
  auto mb = pipeline::which(1, 0);
  mb.training = false;
  for (int round = 0; round < 2; ++round) model.forward(mb, make_images(1, 0), make_labels(1, 0));
  auto metrics = model.take_metrics();
  CHECK(training.num_samples == num_microbatches * microbatch_size);
  CHECK(metrics.num_samples == 2 * microbatch_size);
  CHECK(metrics.loss_sum > 0);
  CHECK_THROWS_AS(input_gradient_of(*model.stages[3], mb, {}), std::logic_error);
  model.train_step(1);
  expected.train_step(1);
  CHECK(same_bits(model.parameters(), expected.parameters()));
}

TEST_CASE("the loss is the mean over the global batch, up to rounding for any split") {
  auto sgd = troupe::optim::SGD({.lr = 1});
  pipeline whole(1, sgd), halves(1, sgd);
  auto images = make_images(0, 0).rows(0, 4), labels = make_labels(0, 0).rows(0, 4);
  whole.forward({0, 0, 1, true}, images, labels);
  input_gradient_of(*whole.stages[0], {0, 0, 1, true}, {});
  whole.stages[0]->backward_weight({0, 0, 1, true});
  for (int half : {0, 1}) {
    halves.forward({0, half, 2, true}, images.rows(2 * half, 2), labels.rows(2 * half, 2));
    input_gradient_of(*halves.stages[0], {0, half, 2, true}, {});
    halves.stages[0]->backward_weight({0, half, 2, true});
  }
  whole.apply(0);
  halves.apply(0);
  auto a = whole.parameters(), b = halves.parameters();
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].value.values<float>().size(); ++j)
      CHECK(std::abs(a[i].value.values<float>()[j] - b[i].value.values<float>()[j]) < 1e-6);
  CHECK_FALSE(same_bits(a, pipeline(1, sgd).parameters()));
}

TEST_CASE("the first stage has no input gradient, all others have one of their input's shape") {
  pipeline model(4);
  model.forward(0, 0);
  auto mb = pipeline::which(0, 0);
  auto gradient = input_gradient_of(*model.stages[3], mb, {});
  CHECK(gradient.shape() == troupe::shape{microbatch_size, 13});
  gradient = input_gradient_of(*model.stages[1], mb, input_gradient_of(*model.stages[2], mb, gradient));
  CHECK(gradient.shape() == troupe::shape{microbatch_size, 17});
  CHECK_FALSE(input_gradient_of(*model.stages[0], mb, gradient).defined());
}

TEST_CASE("calls out of order are refused with the microbatch") {
  pipeline model(1);
  auto& stage = *model.stages[0];
  CHECK_THROWS_WITH(input_gradient_of(stage, pipeline::which(3, 1), {}),
                    ContainsSubstring("step 3 microbatch 1"));
  CHECK_THROWS_AS(stage.backward_weight(pipeline::which(0, 0)), std::logic_error);
  model.forward(0, 0);
  CHECK_THROWS_WITH(model.forward(0, 0), ContainsSubstring("in flight"));
  CHECK_THROWS_AS(input_gradient_of(stage, pipeline::which(1, 0), {}), std::logic_error);
  CHECK_THROWS_AS(stage.backward_weight(pipeline::which(0, 0)), std::logic_error);
  CHECK_THROWS_WITH(stage.apply(0), ContainsSubstring("in flight"));
  model.forward(0, 1);
  model.backward(0, 1);
  model.backward_input(0, 0);
  CHECK_THROWS_WITH(stage.backward_weight(pipeline::which(0, 0)),
                    ContainsSubstring("expected a microbatch after 1"));
}

TEST_CASE("bad samples are refused with the reason") {
  pipeline model(1);
  auto mb = pipeline::which(0, 0);
  CHECK_THROWS_WITH(model.forward(mb, make_images(0, 0), {}), ContainsSubstring("labels"));
  model.stages[0]->discard();
  auto labels = make_labels(0, 0);
  labels.values<std::int64_t>()[2] = 3;
  CHECK_THROWS_WITH(model.forward(mb, make_images(0, 0), labels), ContainsSubstring("3 at sample 2"));
  model.stages[0]->discard();
  CHECK_THROWS_AS(model.forward(mb, tensor::zeros({5, 3, 4}), make_labels(0, 0)), std::invalid_argument);
}

TEST_CASE("programs of one factory share no weights, and it refuses an invalid partition at once") {
  auto model = troupe::testing::four_layer_model();
  auto make = troupe::testing::programs_of(model, 2, {.optimizer = troupe::optim::SGD(), .seed = 42});
  auto first = make({.stage = 0}), second = make({.stage = 0});
  CHECK(same_bits(first->state(), second->state()));
  first->state()[0].value.fill_zero();
  CHECK_FALSE(same_bits(first->state(), second->state()));
  CHECK_THROWS_AS(make({.stage = 2}), std::out_of_range);
  CHECK_THROWS_AS(troupe::testing::programs_of(model, 5, {.optimizer = troupe::optim::SGD()}),
                  troupe::bad_input);
}

TEST_CASE("a model starts from its initial weights for every partition") {
  pipeline trained(2);
  trained.train_step(0);
  auto weights = std::make_shared<const std::vector<troupe::named_tensor>>(trained.parameters());
  for (int stages : {1, 3}) {
    auto make = troupe::testing::programs_of(
        troupe::testing::four_layer_model(), stages,
        {.optimizer = troupe::optim::SGD(), .seed = 7, .initial_weights = weights});
    for (int stage = 0; stage < stages; ++stage)
      for (const auto& [name, value] : make({.stage = stage})->parameters()) {
        auto given = std::ranges::find(*weights, name, &troupe::named_tensor::name);
        REQUIRE(given != weights->end());
        CHECK(same_bits(value, given->value));
      }
  }
}

TEST_CASE("initial weights that are missing, unknown or of another shape are refused by name") {
  troupe::testing::device_under_test();  // skips here, not within what must not throw
  auto make = [](auto change) {
    auto weights = pipeline(1).parameters();
    change(weights);
    troupe::testing::programs_of(
        troupe::testing::four_layer_model(), 1,
        {.optimizer = troupe::optim::SGD(),
         .initial_weights = std::make_shared<const std::vector<troupe::named_tensor>>(weights)});
  };
  CHECK_NOTHROW(make([](auto&) {}));
  CHECK_THROWS_WITH(make([](auto& all) { all.erase(all.begin()); }), ContainsSubstring("2.bias is missing"));
  CHECK_THROWS_WITH(make([](auto& all) { all.push_back(all[0]); }), ContainsSubstring("there twice"));
  CHECK_THROWS_WITH(make([](auto& all) {
                      all.push_back({"9.weight", tensor::zeros({1})});
                    }),
                    ContainsSubstring("9.weight is not in the model"));
  CHECK_THROWS_WITH(make([](auto& all) { all[0].value = tensor::zeros({3}); }),
                    ContainsSubstring("2.bias is f32[3], expected f32[17]"));
  CHECK_THROWS_AS(make([](auto& all) { all.clear(); }), troupe::bad_input);
}
