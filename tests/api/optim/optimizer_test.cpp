#include "troupe/optim/optimizer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <stdexcept>

#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/lamb_step.hpp"
#include "troupe/ops/sgd_step.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/optim/clip.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"

namespace optim = troupe::optim;
using Catch::Matchers::ContainsSubstring;
using troupe::adam_slot;
using troupe::parameter;
using troupe::tensor;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;

namespace {

struct two_parameters {
  parameter weight{"weight", random_tensor({3, 2}, "weight"), random_tensor({3, 2}, "dw")};
  parameter bias{"bias", random_tensor({3}, "bias"), random_tensor({3}, "db")};
  two_parameters() { weight.has_gradient = bias.has_gradient = true; }
  std::vector<troupe::named_parameter> named() { return {{"0.weight", &weight}, {"0.bias", &bias}}; }
};

std::vector<std::string> names_of(const std::vector<troupe::named_tensor>& state) {
  std::vector<std::string> names;
  for (const auto& each : state) names.push_back(each.name);
  return names;
}

}  // namespace

TEST_CASE("Adam keeps two means for each parameter and steps every one") {
  two_parameters stepped, expected;
  optim::Optimizer description = optim::Adam({.lr = 0.25, .weight_decay = 0.5});
  auto optimizer = description(stepped.named());
  CHECK(names_of(optimizer->state()) == std::vector<std::string>{"0.weight/exp_avg", "0.weight/exp_avg_sq",
                                                                 "0.bias/exp_avg", "0.bias/exp_avg_sq"});
  optimizer->apply(4);
  for (auto* each : {&expected.weight, &expected.bias}) {
    auto extents = each->value().shape();
    adam_slot slot{each->value(), each->gradient(), tensor::zeros(extents), tensor::zeros(extents)};
    troupe::adam_step(std::span(&slot, 1), 4, {.learning_rate = 0.25, .weight_decay = 0.5});
  }
  CHECK(same_bits(stepped.weight.value(), expected.weight.value()));
  CHECK(same_bits(stepped.bias.value(), expected.bias.value()));
  CHECK_FALSE(stepped.bias.has_gradient);
}

TEST_CASE("no optimizer changes a frozen parameter, and clipping does not count its gradient") {
  for (const optim::Optimizer& description :
       {optim::Optimizer(optim::SGD({.lr = 0.5, .weight_decay = 0.1})), optim::Optimizer(optim::Adam()),
        optim::Optimizer(optim::AdamW()), optim::Optimizer(optim::LAMB())}) {
    two_parameters stepped, before;
    stepped.weight.requires_gradient = false;  // with a gradient from before
    auto optimizer = description(stepped.named());
    std::vector<parameter*> both{&stepped.weight, &stepped.bias}, alone{&before.bias};
    CHECK(optim::clip_grad_norm(both, 100) == optim::clip_grad_norm(alone, 100));
    optimizer->apply(0);
    CHECK(same_bits(stepped.weight.value(), before.weight.value()));
    CHECK_FALSE(same_bits(stepped.bias.value(), before.bias.value()));
  }
}

TEST_CASE("AdamW decays the weights by themselves, one hundredth by default") {
  two_parameters stepped, expected;
  optim::AdamW()(stepped.named())->apply(0);
  adam_slot slot{expected.weight.value(), expected.weight.gradient(), tensor::zeros({3, 2}),
                 tensor::zeros({3, 2})};
  troupe::adam_step(std::span(&slot, 1), 0, {.weight_decay = 0.01, .decoupled = true});
  CHECK(same_bits(stepped.weight.value(), expected.weight.value()));
}

TEST_CASE("LAMB keeps Adam's means and decays the weights by one hundredth by default") {
  two_parameters stepped, expected;
  auto optimizer = optim::LAMB({.lr = 0.25})(stepped.named());
  CHECK(names_of(optimizer->state()) == std::vector<std::string>{"0.weight/exp_avg", "0.weight/exp_avg_sq",
                                                                 "0.bias/exp_avg", "0.bias/exp_avg_sq"});
  stepped.bias.has_gradient = false;
  optimizer->apply(4);
  adam_slot slot{expected.weight.value(), expected.weight.gradient(), tensor::zeros({3, 2}),
                 tensor::zeros({3, 2})};
  troupe::lamb_step(std::span(&slot, 1), 4, {.learning_rate = 0.25, .weight_decay = 0.01});
  CHECK(same_bits(stepped.weight.value(), expected.weight.value()));
  CHECK(same_bits(stepped.bias.value(), expected.bias.value()));
  CHECK_FALSE(stepped.weight.has_gradient);
}

TEST_CASE("SGD keeps a buffer only with momentum") {
  two_parameters stepped, expected;
  CHECK(optim::SGD({.lr = 0.1})(stepped.named())->state().empty());
  auto optimizer = optim::SGD({.lr = 0.1, .momentum = 0.9, .nesterov = true})(stepped.named());
  CHECK(names_of(optimizer->state()) ==
        std::vector<std::string>{"0.weight/momentum_buffer", "0.bias/momentum_buffer"});
  optimizer->apply(0);
  troupe::sgd_slot slot{expected.weight.value(), expected.weight.gradient(), tensor::zeros({3, 2})};
  troupe::sgd_step(std::span(&slot, 1), {.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
  CHECK(same_bits(stepped.weight.value(), expected.weight.value()));
}

TEST_CASE("writes to the optimizer's state take effect in the next step") {
  two_parameters continued, restored;
  auto first = optim::Adam()(continued.named()), second = optim::Adam()(restored.named());
  first->apply(0);
  second->load_state(first->state());
  restored.weight.value().copy_from(continued.weight.value());
  for (auto* each : {&continued, &restored}) {
    each->weight.gradient().copy_from(random_tensor({3, 2}, "next"));
    each->weight.has_gradient = true;
  }
  first->apply(1);
  second->apply(1);
  CHECK(same_bits(continued.weight.value(), restored.weight.value()));
  CHECK_THROWS_WITH(second->load_state({{"x", tensor::zeros({1})}}), ContainsSubstring("unknown tensor x"));
}

TEST_CASE("options out of their range are named") {
  CHECK_THROWS_WITH(optim::SGD({.lr = -1}), ContainsSubstring("[SGD]") && ContainsSubstring("lr"));
  CHECK_THROWS_WITH(optim::Adam({.lr = std::numeric_limits<double>::infinity()}),
                    ContainsSubstring("a finite lr"));
  CHECK_THROWS_WITH(optim::SGD({.momentum = 2}), ContainsSubstring("momentum"));
  CHECK_THROWS_WITH(optim::SGD({.weight_decay = -1}), ContainsSubstring("weight_decay"));
  CHECK_THROWS_WITH(optim::SGD({.nesterov = true}), ContainsSubstring("nesterov"));
  CHECK_THROWS_WITH(optim::Adam({.beta1 = 1}), ContainsSubstring("[Adam]") && ContainsSubstring("beta1"));
  CHECK_THROWS_WITH(optim::Adam({.beta2 = -0.1}), ContainsSubstring("beta2"));
  CHECK_THROWS_WITH(optim::AdamW({.eps = -1}), ContainsSubstring("[AdamW]") && ContainsSubstring("eps"));
  CHECK_THROWS_WITH(optim::LAMB({.beta1 = -1}), ContainsSubstring("[LAMB]") && ContainsSubstring("beta1"));
  CHECK_THROWS_AS(optim::AdamW({.lr = -1}), std::invalid_argument);
}

TEST_CASE("after a step every weight's copy in another dtype equals a new conversion") {
  for (const optim::Optimizer& description :
       {optim::Optimizer(optim::Adam()), optim::Optimizer(optim::AdamW()), optim::Optimizer(optim::LAMB()),
        optim::Optimizer(optim::SGD({.lr = 0.5})),
        optim::Optimizer(optim::SGD({.lr = 0.5, .momentum = 0.9}))}) {
    two_parameters model;
    auto before = model.weight.as(troupe::dtype::bf16).clone();
    model.bias.as(troupe::dtype::f16);
    description(model.named())->apply(0);
    CHECK_FALSE(same_bits(model.weight.as(troupe::dtype::bf16), before));
    CHECK(same_bits(model.weight.as(troupe::dtype::bf16), cast(model.weight.value(), troupe::dtype::bf16)));
    CHECK(same_bits(model.bias.as(troupe::dtype::f16), cast(model.bias.value(), troupe::dtype::f16)));
    CHECK(model.bias.as(troupe::dtype::f32).dtype() == troupe::dtype::f32);
  }
}

TEST_CASE("elements stepped separately have the bits of elements stepped together") {
  for (const optim::Optimizer& description :
       {optim::Optimizer(optim::Adam({.weight_decay = 0.5})), optim::Optimizer(optim::AdamW()),
        optim::Optimizer(optim::SGD({.lr = 0.5})),
        optim::Optimizer(optim::SGD({.lr = 0.5, .momentum = 0.9, .nesterov = true}))}) {
    parameter whole{"weight", random_tensor({61, 7}, "weight"), random_tensor({61, 7}, "dw")};
    parameter cut{"weight", random_tensor({61, 7}, "weight"), random_tensor({61, 7}, "dw")};
    auto together = description({{"weight", &whole}}), alone = description({{"weight", &cut}});
    REQUIRE(alone->is_elementwise());
    for (std::uint64_t step = 0; step < 3; ++step) {
      for (auto* each : {&whole, &cut}) each->as(troupe::dtype::bf16);
      whole.has_gradient = true;
      together->apply(step);
      for (auto part : {optim::parameter_part{.index = 0, .first = 13, .count = 61 * 7 - 13},
                        optim::parameter_part{.index = 0, .first = 0, .count = 13}})
        alone->apply_part(step, part, optim::elements_of(cut.gradient(), part).clone());
    }
    CHECK(same_bits(cut.value(), whole.value()));
    CHECK(same_bits(cut.as(troupe::dtype::bf16), whole.as(troupe::dtype::bf16)));
    auto expected = together->state(), found = alone->state();
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(found[i].value, expected[i].value));
  }
}

TEST_CASE("LAMB, whose steps depend on a weight's norm, refuses to step elements separately") {
  two_parameters model;
  auto optimizer = optim::LAMB()(model.named());
  CHECK_FALSE(optimizer->is_elementwise());
  CHECK_THROWS_AS(optimizer->apply_part(0, {.index = 0, .first = 0, .count = 1}, tensor::zeros({1})),
                  std::logic_error);
}
