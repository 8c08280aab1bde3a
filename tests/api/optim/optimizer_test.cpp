#include "troupe/optim/optimizer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
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

TEST_CASE("Adam keeps two means and a number of steps for each parameter and steps every one") {
  two_parameters stepped, expected;
  optim::Optimizer description = optim::Adam({.lr = 0.25, .weight_decay = 0.5});
  auto optimizer = description(stepped.named());
  CHECK(names_of(optimizer->state()) == std::vector<std::string>{"0.weight/exp_avg", "0.weight/exp_avg_sq",
                                                                 "0.weight/step", "0.bias/exp_avg",
                                                                 "0.bias/exp_avg_sq", "0.bias/step"});
  optimizer->apply(4);
  for (auto* each : {&expected.weight, &expected.bias}) {
    auto extents = each->value().shape();
    adam_slot slot{each->value(), each->gradient(), tensor::zeros(extents), tensor::zeros(extents)};
    troupe::adam_step(std::span(&slot, 1), 0, {.learning_rate = 0.25, .weight_decay = 0.5});
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

TEST_CASE("LAMB keeps what Adam keeps and decays the weights by one hundredth by default") {
  two_parameters stepped, expected;
  auto optimizer = optim::LAMB({.lr = 0.25})(stepped.named());
  CHECK(names_of(optimizer->state()) == std::vector<std::string>{"0.weight/exp_avg", "0.weight/exp_avg_sq",
                                                                 "0.weight/step", "0.bias/exp_avg",
                                                                 "0.bias/exp_avg_sq", "0.bias/step"});
  stepped.bias.has_gradient = false;
  optimizer->apply(4);
  adam_slot slot{expected.weight.value(), expected.weight.gradient(), tensor::zeros({3, 2}),
                 tensor::zeros({3, 2})};
  troupe::lamb_step(std::span(&slot, 1), 0, {.learning_rate = 0.25, .weight_decay = 0.01});
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
      alone->end_parts(step, 0);
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

namespace {

/// What torch.optim 2.14 makes of two parameters (lr 0.1, weight decay 0.01), of which the second gets its
/// first gradient in step `late`, after `steps` steps.
struct torch_values {
  optim::Optimizer optimizer;
  std::uint64_t late, steps;
  std::vector<float> first, second;
};

std::vector<torch_values> values_of_torch() {
  optim::Optimizer adam = optim::Adam({.lr = 0.1, .weight_decay = 0.01}),
                   adamw = optim::AdamW({.lr = 0.1, .weight_decay = 0.01});
  return {
      {adam, 10, 11, {0x1.d3623p-6F, 0x1.c2c846p-3F, 0x1.010308p-1F}, {0x1.4ccccp-1F, -0x1.cccccep-1F}},
      {adam, 10, 15, {-0x1.a7fc5cp-4F, 0x1.633a8cp-2F, 0x1.710ef8p-2F}, {0x1.177976p-2F, -0x1.0bd83p-1F}},
      {adam,
       1000,
       1003,
       {-0x1.73d7dep+3F, 0x1.90555cp+1F, -0x1.8e5f32p+2F},
       {0x1.d44eb6p-2F, -0x1.6a3752p-1F}},
      {adamw, 10, 11, {0x1.086698p-5F, 0x1.b84bbap-3F, 0x1.0db928p-1F}, {0x1.4c6a8p-1F, -0x1.cc49bcp-1F}},
      {adamw, 10, 15, {-0x1.937b64p-4F, 0x1.610ea8p-2F, 0x1.9380e2p-2F}, {0x1.1557aep-2F, -0x1.0a0854p-1F}},
      {adamw,
       1000,
       1003,
       {-0x1.3e30a8p+4F, 0x1.3fa812p+4F, -0x1.3b41e2p+4F},
       {0x1.d2abp-2F, -0x1.68f34ap-1F}}};
}

void give(parameter& to, const std::vector<float>& gradient, float factor) {
  for (std::size_t i = 0; i < gradient.size(); ++i) to.gradient().values<float>()[i] = factor * gradient[i];
  to.has_gradient = true;
}

void check_close(const parameter& found, const std::vector<float>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK_THAT(found.value().values<float>()[i], Catch::Matchers::WithinRel(expected[i], 2e-5F));
}

/// A parameter that has had no gradient in `late` steps, beside one that has had one in each.
struct late_parameter {
  parameter early{"early", tensor::full({3}, 1), tensor::zeros({3})};
  parameter late{"late", tensor::full({3}, 1), tensor::zeros({3})};
  std::vector<troupe::named_parameter> named() { return {{"early", &early}, {"late", &late}}; }
  void step(optim::optimizer_state& optimizer, std::uint64_t number, bool is_late_one_used) {
    give(early, {0.5F, 0.25F, -1}, 1);
    if (is_late_one_used) give(late, {0.5F, 0.25F, -1}, 1);
    optimizer.apply(number);
  }
};

}  // namespace

TEST_CASE("a parameter that gets its first gradient late moves as torch's does") {
  for (const auto& [description, late, steps, first, second] : values_of_torch()) {
    INFO(late << " of " << steps);
    parameter early("early", tensor::from(std::vector<float>{0.5F, -0.25F, 1}, {3}), tensor::zeros({3})),
        later("late", tensor::from(std::vector<float>{0.75F, -1}, {2}), tensor::zeros({2}));
    auto optimizer = description({{"early", &early}, {"late", &later}});
    for (std::uint64_t step = 0; step < steps; ++step) {
      give(early, {0.5F, -0.125F, 0.25F}, step % 2 == 0 ? 1 : -0.5F);
      if (step >= late) give(later, {0.25F, -0.5F}, static_cast<float>(1 + (step - late) % 3));
      optimizer->apply(step);
    }
    check_close(early, first);
    check_close(later, second);
  }
}

TEST_CASE("a parameter's first step has the same bits whenever it comes") {
  for (const optim::Optimizer& description :
       {optim::Optimizer(optim::Adam({.lr = 0.1})), optim::Optimizer(optim::AdamW({.lr = 0.1})),
        optim::Optimizer(optim::LAMB({.lr = 0.1}))}) {
    late_parameter model;
    auto optimizer = description(model.named());
    model.step(*optimizer, 0, false);
    auto expected = model.early.value().clone();
    for (std::uint64_t step : {1, 2, 3}) model.step(*optimizer, step, false);
    CHECK(same_bits(model.late.value(), tensor::full({3}, 1)));
    model.step(*optimizer, 4, true);
    CHECK(same_bits(model.late.value(), expected));
  }
}

TEST_CASE("the schedule goes by the job's step, also for a parameter that is stepped late") {
  late_parameter model;
  auto only_in_step_3 = [](std::uint64_t step) { return step == 3 ? 1.0 : 0.0; };
  auto optimizer = optim::Adam({.lr = 0.1, .schedule = only_in_step_3})(model.named());
  for (std::uint64_t step : {0, 1, 2}) model.step(*optimizer, step, false);
  model.step(*optimizer, 3, true);
  CHECK_THAT(model.late.value().values<float>()[0], Catch::Matchers::WithinRel(0.9F, 1e-5F));
}

TEST_CASE("the numbers of steps go on from a saved state, and a state without them has those of the job") {
  for (bool is_old : {false, true}) {
    late_parameter continued, restored;
    auto first = optim::Adam({.lr = 0.1})(continued.named()),
         second = optim::Adam({.lr = 0.1})(restored.named());
    for (std::uint64_t step : {0, 1, 2}) continued.step(*first, step, step == 2);
    auto saved = first->state();
    if (is_old)
      std::erase_if(saved, [](const troupe::named_tensor& each) { return each.name.ends_with("/step"); });
    second->load_state(saved);
    restored.early.value().copy_from(continued.early.value());
    restored.late.value().copy_from(continued.late.value());
    auto before = continued.late.value().clone();
    continued.step(*first, 3, true);
    restored.step(*second, 3, true);
    CHECK(same_bits(continued.early.value(), restored.early.value()));
    CHECK(same_bits(continued.late.value(), restored.late.value()) == !is_old);
    if (!is_old) continue;
    // As if it had had three steps before, of which the moments know one.
    adam_slot slot{before, continued.late.gradient(), tensor::full({3}, 0), tensor::full({3}, 0)};
    for (std::size_t i = 0; i < 3; ++i) {
      auto g = continued.late.gradient().values<float>()[i];
      slot.exp_avg.values<float>()[i] = static_cast<float>(1 - 0.9) * g;
      slot.exp_avg_sq.values<float>()[i] = static_cast<float>(1 - 0.999) * (g * g);
    }
    troupe::adam_step(std::span(&slot, 1), 3, {.learning_rate = 0.1});
    CHECK(same_bits(restored.late.value(), before));
    CHECK(second->state()[2].value.values<std::int64_t>()[0] == 4);
  }
}
