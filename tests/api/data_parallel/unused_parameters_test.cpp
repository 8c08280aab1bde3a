#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <latch>
#include <mutex>

#include "api/data_parallel/replicated_model.hpp"
#include "support/bits.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Two branches, of which a pass uses those it is told to.
class branches : public nn::module_of<branches> {
 public:
  variable forward(const variable& input) override {
    auto result = uses_a ? a.forward(input) : b.forward(input);
    return uses_both ? add(result, b.forward(input)) : result;
  }
  void each_child(const child_visitor& visit) override {
    visit("a", a);
    visit("b", b);
  }
  nn::Linear a{4, 3}, b{4, 3};
  bool uses_a = true, uses_both = false;
};

}  // namespace

TEST_CASE("a parameter without a gradient is an error on all members, and no member hangs") {
  std::vector<std::string> told(2);
  std::latch wrapped(2);
  on_members(2, [&](communicator& group) {
    branches model;
    model.materialize(1);
    DataParallel replicated(model, group);
    wrapped.arrive_and_wait();
    model.uses_both = group.rank() == 1;
    auto loss =
        nn::CrossEntropy()(replicated.forward({tensor::full({2, 4}, 1)}), tensor::zeros({2}, dtype::i64), 0.5)
            .loss;
    told[static_cast<std::size_t>(group.rank())] = error_of([&] {
      replicated.backward(loss);
      model.a.parameters()[0]->wait_ready();
    });
  });
  CHECK(told[0].find("got none for b.weight, b.bias on rank 0") != std::string::npos);
  CHECK(told[0].find("find_unused_parameters") != std::string::npos);
  CHECK(told[1].find("brought no gradient for b.weight, b.bias") != std::string::npos);
}

TEST_CASE(
    "with find_unused_parameters an unused gradient counts as zeros, and a parameter that no member used is "
    "unchanged") {
  for (bool is_view : {true, false}) {
    on_members(2, [&](communicator& group) {
      branches model;
      model.materialize(1);
      DataParallel replicated(model, group,
                              {.gradient_as_bucket_view = is_view, .find_unused_parameters = true});
      auto pass = [&] {
        auto x = random_tensor({2, 4}, std::to_string(group.rank()));
        auto loss = nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss;
        replicated.backward(loss);
      };
      // Garbage from an earlier step must not come back.
      model.uses_both = true;
      pass();
      model.uses_both = false;
      model.uses_a = group.rank() == 0;
      pass();
      // Each branch was used by one member: half of that member's own gradient.
      auto own = nn::Linear(4, 3);
      own.materialize(1, group.rank() == 0 ? "a." : "b.");
      auto x = random_tensor({2, 4}, std::to_string(group.rank()));
      nn::CrossEntropy()(own.forward({x}), tensor::zeros({2}, dtype::i64), 0.5)
          .loss.backward(tensor::full({}, 0.5F));
      auto& used = group.rank() == 0 ? model.a : model.b;
      bool same = same_bits(used.parameters()[0]->gradient(), own.parameters()[0]->gradient());
      model.uses_a = true;
      pass();
      static std::mutex checking;
      std::lock_guard lock(checking);
      CHECK(same);
      CHECK(model.a.parameters()[0]->has_gradient);
      CHECK_FALSE(model.b.parameters()[0]->has_gradient);
    });
  }
}

TEST_CASE("a branch that is first used late steps as in a first step, chunk by chunk too") {
  std::vector<named_tensor> found[2][2];  // [member][overlapped]
  on_members(2, [&](communicator& group) {
    for (bool is_overlapped : {false, true}) {
      branches model;
      model.materialize(1);
      DataParallel replicated(model, group, {.find_unused_parameters = true});
      auto optimizer = is_overlapped ? replicated.make_optimizer(optim::Adam({.lr = 0.1}))
                                     : optim::Adam({.lr = 0.1})(model.named_parameters());
      auto before = model.b.parameters()[0]->value().clone();
      for (std::uint64_t step = 0; step < 6; ++step) {
        model.uses_both = step >= 5 && group.rank() == 1;
        auto x = tensor::full({2, 4}, 1);
        replicated.backward(
            nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss);
        optimizer->apply(step);
      }
      optimizer->synchronize();
      auto state = copy_of(optimizer->state());
      for (const auto& [name, target] : model.named_parameters())
        state.push_back({name, target->value().clone()});
      std::ranges::sort(state, {}, &named_tensor::name);
      found[group.rank()][is_overlapped] = state;
      static std::mutex checking;
      std::lock_guard lock(checking);
      const auto& after = model.b.parameters()[0]->value();
      for (std::size_t i = 0; i < 12; ++i)
        CHECK_THAT(std::abs(after.values<float>()[i] - before.values<float>()[i]),
                   Catch::Matchers::WithinAbs(0.1, 1e-4));
    }
  });
  for (bool is_overlapped : {false, true}) CHECK(same_bits(found[0][is_overlapped], found[1][is_overlapped]));
  CHECK(same_bits(found[0][0], found[0][1]));
}

TEST_CASE("frozen weights beside learned biases stay as they are, on every member") {
  std::vector<named_tensor> found[2];
  on_members(2, [&](communicator& group) {
    auto model = small_model();
    for (const auto& [name, target] : model.named_parameters())
      target->requires_gradient = name.ends_with(".bias");
    DataParallel replicated(model, group);
    auto optimizer = optim::Adam({.lr = 1e-2})(model.named_parameters());
    for (std::uint64_t step = 0; step < 3; ++step) {
      run_replica(replicated, step);
      optimizer->apply(step);
    }
    for (const auto& [name, target] : model.named_parameters())
      found[group.rank()].push_back({name, target->value()});
  });
  CHECK(same_bits(found[0], found[1]));
  auto began = small_model();
  auto before = began.named_parameters();
  for (std::size_t i = 0; i < before.size(); ++i) {
    CAPTURE(before[i].name);
    CHECK(same_bits(found[0][i].value, before[i].target->value()) == before[i].name.ends_with(".weight"));
  }
}
