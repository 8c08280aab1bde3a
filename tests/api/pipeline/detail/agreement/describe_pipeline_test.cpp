#include "troupe/pipeline/detail/agreement/describe_pipeline.hpp"

#include <catch2/catch_test_macros.hpp>

#include "api/pipeline/pipeline.hpp"
#include "troupe/nn/combine.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/embedding.hpp"
#include "troupe/nn/mse_loss.hpp"
#include "troupe/nn/transformer_block.hpp"
#include "troupe/optim/lr_schedule.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

Pipeline usual() { return Pipeline(four_layer_model()); }

agreement::job_description described(const Pipeline& pipeline) {
  agreement::job_description made;
  detail::describe_pipeline(pipeline, made);
  return made;
}

/// In which fields they differ.
std::string difference(const Pipeline& one, const Pipeline& other) {
  return agreement::description_difference({{0, described(one)}, {1, described(other)}}).value_or("");
}

bool names(const std::string& text, const std::string& field) {
  return text.find(field + ": rank 1 has ") != std::string::npos;
}

}  // namespace

TEST_CASE("pipelines with equal definitions agree, also when one is materialized") {
  CHECK(difference(usual(), usual()).empty());
  auto model = four_layer_model();
  model.materialize(7);
  CHECK(difference(usual(), Pipeline(model)).empty());
}

TEST_CASE("optimizers of another type or with another effect at any step differ") {
  auto with = [](optim::Optimizer optimizer) { return usual().optimizer(std::move(optimizer)); };
  auto adam = with(optim::Adam({.lr = 1e-3}));
  CHECK(difference(adam, with(optim::Adam({.lr = 1e-3}))).empty());
  CHECK(names(difference(adam, with(optim::Adam({.lr = 1.001e-3}))), "optimizer lr"));
  CHECK(names(difference(adam, with(optim::Adam({.lr = 1e-3, .beta2 = 0.99}))), "optimizer beta2"));
  CHECK(names(difference(adam, with(optim::SGD({.lr = 1e-3}))), "optimizer"));
  CHECK(names(difference(adam, with(optim::AdamW({.lr = 1e-3, .weight_decay = 0.1}))), "optimizer"));
  auto decaying = [&](std::uint64_t steps) {
    return with(optim::Adam({.lr = 1e-3, .schedule = optim::cosine(steps, 5)}));
  };
  CHECK(difference(decaying(20'000), decaying(20'000)).empty());
  CHECK(names(difference(decaying(20'000), decaying(30'000)), "optimizer schedule"));
  auto own = [&](double lr) {
    return with([lr](std::vector<named_parameter> of) { return optim::SGD({.lr = lr})(std::move(of)); });
  };
  CHECK(difference(own(0.1), own(0.1)).empty());
  CHECK(names(difference(own(0.1), own(0.2)), "optimizer function"));
}

TEST_CASE("an option of the optimizer that differs is named with both values") {
  auto with = [](optim::Optimizer optimizer) { return usual().optimizer(std::move(optimizer)); };
  CHECK(difference(with(optim::Adam({.lr = 1e-3})), with(optim::Adam({.lr = 0.1}))) ==
        "optimizer lr: rank 1 has 0.1, rank 0 has 0.001");
  CHECK(difference(with(optim::SGD({.momentum = 0.9})),
                   with(optim::SGD({.momentum = 0.9, .nesterov = true}))) ==
        "optimizer nesterov: rank 1 has true, rank 0 has false");
  auto scheduled = [&](optim::lr_schedule schedule) {
    return with(optim::AdamW({.schedule = std::move(schedule)}));
  };
  CHECK(difference(scheduled(optim::cosine(6)), scheduled(optim::cosine(10, 2, 0.1))) ==
        "optimizer schedule: rank 1 has cosine(10, 2, 0.1), rank 0 has cosine(6, 0, 0)");
  CHECK(difference(scheduled(optim::linear_warmup(5)), scheduled(optim::step_decay(3, 0.5))) ==
        "optimizer schedule: rank 1 has step_decay(3, 0.5), rank 0 has linear_warmup(5)");
  auto own = [&](double factor) { return scheduled([factor](std::uint64_t) { return factor; }); };
  CHECK(difference(own(1), own(1)).empty());
  CHECK(names(difference(own(1), own(0.5)), "optimizer schedule"));
}

TEST_CASE("losses of another type or with other values differ") {
  CHECK(names(difference(usual(), usual().loss(nn::MSELoss())), "loss"));
  CHECK(names(difference(usual(), usual().loss(nn::CrossEntropy({.label_smoothing = 0.1}))),
              "loss label_smoothing"));
  auto own = [](double factor) {
    return usual().loss([factor](const variable& output, const tensor& targets, double gradient_scale) {
      return nn::MSELoss()(output, targets, factor * gradient_scale);
    });
  };
  CHECK(difference(own(2), own(2)).empty());
  CHECK(names(difference(own(2), own(3)), "loss"));
}

TEST_CASE("functions that throw when evaluated have equal fingerprints if their messages are equal") {
  auto failing = [](const char* text) {
    return usual().optimizer([text](std::vector<named_parameter>) -> std::unique_ptr<optim::optimizer_state> {
      throw std::runtime_error(text);
    });
  };
  CHECK(difference(failing("no lr"), failing("no lr")).empty());
  CHECK(names(difference(failing("no lr"), failing("no momentum")), "optimizer function"));
}

TEST_CASE("differing models are found, and the first difference is named") {
  auto with = [](auto... layers) { return Pipeline(nn::Sequential(std::move(layers)...)); };
  auto mine = with(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  CHECK(names(difference(mine, with(nn::Linear(4, 9), nn::ReLU(), nn::Linear(9, 2))), "parameter 0.weight"));
  CHECK(names(difference(mine, with(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 2))), "module 1"));
  CHECK(
      names(difference(mine, with(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2), nn::ReLU())), "module 3"));
  CHECK(names(difference(mine, with(nn::Linear(4, 8, {.bias = false}), nn::ReLU(), nn::Linear(8, 2))),
              "parameter 0.bias"));
  CHECK(names(difference(mine, with(nn::Linear(4, 8, {.weight_init = nn::init::normal(0, 0.02F)}), nn::ReLU(),
                                    nn::Linear(8, 2))),
              "parameter 0.weight"));
  nn::Sequential frozen(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 2));
  frozen[2]->parameters()[0]->requires_gradient = false;
  CHECK(names(difference(mine, Pipeline(frozen)), "parameter 2.weight"));
}

TEST_CASE("different numeric options are found") {
  CHECK(names(difference(usual(), usual().precision(dtype::bf16)), "precision"));
  CHECK(names(difference(usual(), usual().clip_grad_norm(1)), "clip_grad_norm"));
  CHECK(names(difference(usual(), usual().loss_scale({.initial_scale = 1024})), "loss_scale"));
}

TEST_CASE("a pipeline takes its settings from the options") {
  job_options options;
  options.stages = 3;
  options.microbatches = 16;
  options.schedule = schedule_kind::gpipe;
  options.precision = dtype::f16;
  options.clip_grad_norm = 0.5;
  options.loss_scale = 1024;
  Pipeline pipeline(four_layer_model(), options);
  CHECK(pipeline.stages() == 3);
  CHECK(pipeline.microbatches() == 16);
  CHECK(pipeline.schedule() == schedule_kind::gpipe);
  CHECK(pipeline.numerics().precision == dtype::f16);
  CHECK(pipeline.numerics().clip_grad_norm == 0.5);
  CHECK(pipeline.numerics().loss_scale.initial_scale == 1024);
  CHECK_THROWS_AS(usual().optimizer(nullptr), std::invalid_argument);
}

TEST_CASE("graphs whose nodes are joined in another way, and other named cuts, differ") {
  auto joined = [](const char* first, const char* second) {
    nn::Graph model;
    model.add("a", nn::Linear(4, 4), model.input());
    model.add("b", nn::Linear(4, 4), "input");
    model.add("sum", nn::Add(), first, second);
    model.output(model.add("all", nn::Concat(), {"a", "b", "sum"}));
    return Pipeline(model);
  };
  CHECK(difference(joined("a", "b"), joined("a", "b")).empty());
  CHECK(names(difference(joined("a", "b"), joined("b", "a")), "inputs of sum"));
  CHECK(names(difference(joined("a", "b"), joined("a", "b").cut_before({"b"})), "stages begin with"));
}
