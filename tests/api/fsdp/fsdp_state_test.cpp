// States of sharded training: saved, loaded on other numbers of members, written to from outside.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "api/fsdp/sharded_training.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/loss_scaler.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

struct saved_training {
  std::vector<named_tensor> weights, optimizer;
};

/// Trains steps [first, last) of 12 replicas on some members, from a state if there is one.
saved_training train(const optim::Optimizer& kind, int num_members, shard_strategy strategy,
                     std::uint64_t first, std::uint64_t last, const saved_training* from = nullptr) {
  saved_training result;
  auto example = tokens();
  on_members(num_members, [&](communicator& group) {
    auto model = materialized(example);
    if (from)
      for (auto* each : model->parameters()) each->value().fill_zero();
    FullyShardedDataParallel sharded(*model, group,
                                     {.strategy = strategy, .unit_size_mb = small_units, .num_replicas = 12});
    auto optimizer = sharded.make_optimizer(kind);
    if (from) {
      sharded.load_state_dict(from->weights);
      sharded.load_optimizer_state(*optimizer, from->optimizer);
      sharded.set_step(first);
    }
    std::vector<float> losses;
    for (auto step = first; step < last; ++step) {
      run_sharded_passes(sharded, example, {.num_replicas = 12}, step, losses);
      optimizer->apply(step);
    }
    saved_training saved{sharded.state_dict(), sharded.optimizer_state_dict(*optimizer)};
    if (group.rank() == 0) result = std::move(saved);
  });
  return result;
}

void check_same(const saved_training& a, const saved_training& b) {
  CHECK(same_bits(a.weights, b.weights));
  CHECK(same_bits(a.optimizer, b.optimizer));
}

std::string refused(const std::function<void(FullyShardedDataParallel&)>& call) {
  std::string told;
  on_members(2, [&](communicator& group) {
    auto model = materialized(images());
    FullyShardedDataParallel sharded(*model, group, {.unit_size_mb = small_units});
    auto before = sharded.state_dict();
    auto error = error_of([&] { call(sharded); });
    auto is_unchanged = same_bits(sharded.state_dict(), before);
    if (group.rank() == 0) told = error + (is_unchanged ? "" : ", and changed");
  });
  return told;
}

}  // namespace

TEST_CASE("a state of four members goes on on three, one and two, to the bits of one run") {
  for (const auto& kind :
       {optim::Optimizer(optim::Adam({.lr = 1e-2})), optim::Optimizer(optim::LAMB({.lr = 1e-2}))}) {
    auto unbroken = train(kind, 1, shard_strategy::full, 0, 4);
    auto half = train(kind, 4, shard_strategy::full, 0, 2);
    check_same(train(kind, 3, shard_strategy::full, 2, 4, &half), unbroken);
    check_same(train(kind, 1, shard_strategy::grad, 2, 4, &half), unbroken);
    check_same(train(kind, 2, shard_strategy::optimizer, 2, 4, &half), unbroken);
  }
}

TEST_CASE("the whole state of an optimizer is that of one over the whole model") {
  auto sharded = train(optim::Adam({.lr = 1e-2}), 3, shard_strategy::full, 0, 2);
  auto model = materialized(tokens());
  auto whole = optim::Adam({.lr = 1e-2})(model->named_parameters());
  CHECK(whole->state().size() == sharded.optimizer.size());
  whole->load_state(sharded.optimizer);
}

TEST_CASE("states that do not fit are refused, and nothing changes") {
  auto whole = materialized(images())->state_dict();
  auto without = whole;
  without.erase(without.begin());
  CHECK_THAT(refused([&](auto& sharded) { sharded.load_state_dict(without); }),
             ContainsSubstring("missing tensor 0.weight") && !ContainsSubstring("and changed"));
  auto with = whole;
  with.push_back({"9.weight", tensor::zeros({2})});
  CHECK_THAT(refused([&](auto& sharded) { sharded.load_state_dict(with); }),
             ContainsSubstring("unknown tensor 9.weight") && !ContainsSubstring("and changed"));
  CHECK(refused([&](auto& sharded) {
          auto unmatched = sharded.load_state_dict(with, {.strict = false});
          if (unmatched.unexpected != std::vector<std::string>{"9.weight"})
            throw std::runtime_error("unnamed");
        }) == "no error");
  auto other = whole;
  other[0].value = tensor::zeros({3, 3});
  CHECK_THAT(refused([&](auto& sharded) { sharded.load_state_dict(other); }),
             ContainsSubstring("0.weight is f32[3, 3], expected f32[4, 1, 3, 3]") &&
                 !ContainsSubstring("and changed"));
  CHECK_THAT(refused([&](auto& sharded) {
               auto optimizer = sharded.make_optimizer(optim::Adam());
               sharded.load_optimizer_state(*optimizer, {});
             }),
             ContainsSubstring("expected a whole state of this model and optimizer, got one without 0.bias"));
}

TEST_CASE("values written through the model's own functions stay") {
  for (auto strategy : {shard_strategy::grad, shard_strategy::full}) {
    std::vector<named_tensor> found;
    auto other = images().make();
    other->materialize(99);
    on_members(2, [&](communicator& group) {
      auto model = materialized(images());
      FullyShardedDataParallel sharded(*model, group, {.strategy = strategy, .unit_size_mb = small_units});
      model->load_state_dict(other->state_dict());
      sharded.forward({batch_of(0, 0).samples});
      auto weights = sharded.state_dict();
      if (group.rank() == 0) found = std::move(weights);
    });
    auto expected = other->named_parameters();
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(same_bits(found[i].value, expected[i].target->value()));
  }
}

TEST_CASE("members agree whether scaled gradients are finite, and skip such a step") {
  std::vector<bool> decisions[2];
  std::vector<named_tensor> before, after;
  on_members(2, [&](communicator& group) {
    auto model = materialized(images());
    FullyShardedDataParallel sharded(*model, group, {.unit_size_mb = small_units});
    auto optimizer = sharded.make_optimizer(optim::Adam());
    optim::loss_scaler scaler({.initial_scale = 1024});
    auto& decided = decisions[static_cast<std::size_t>(group.rank())];
    for (std::uint64_t step = 0; step < 3; ++step) {
      auto batch = batch_of(step, group.rank());
      if (step == 1 && group.rank() == 1)
        batch.samples.values<float>()[0] = std::numeric_limits<float>::infinity();
      auto loss = nn::CrossEntropy()(sharded.forward({batch.samples}), batch.labels, 1.0 / 3).loss;
      sharded.backward(multiply(loss, scaler.scale()));
      auto is_finite = sharded.unscale_and_check(scaler);
      decided.push_back(is_finite);
      if (step == 1 && group.rank() == 0) before = sharded.state_dict();
      if (step == 1 && group.rank() == 1) sharded.state_dict();
      optimizer->apply(step - scaler.num_skipped());
      if (step == 1) {
        auto weights = sharded.state_dict();
        if (group.rank() == 0) after = std::move(weights);
      }
      scaler.update(is_finite);
    }
  });
  CHECK(decisions[0] == std::vector<bool>{true, false, true});
  CHECK(decisions[1] == decisions[0]);
  CHECK(same_bits(before, after));
}
