// What members of sharded training hold, and when.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <mutex>

#include "api/fsdp/sharded_training.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/fsdp/estimate_sharding.hpp"
#include "troupe/optim/sgd.hpp"
#include "troupe/tensor/memory_account.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// A stack of equal layers, a unit each.
trained_example stack(int num_layers, std::int64_t width = 36) {
  auto example = images();
  example.make = [=] {
    auto model = std::make_shared<nn::Sequential>(nn::Flatten());
    if (width != 36) model->push_back(nn::Linear(36, width));
    for (int i = 0; i < num_layers; ++i) model->push_back(nn::Linear(width, width));
    return model;
  };
  return example;
}

std::size_t bytes_of(nn::Module& model) {
  return static_cast<std::size_t>(model.num_parameters()) * sizeof(float);
}

std::size_t used(const account_statistics& statistics, memory_use use) {
  return statistics.by_use[static_cast<std::size_t>(use)];
}
std::size_t peak(const account_statistics& statistics, memory_use use) {
  return statistics.peak_by_use[static_cast<std::size_t>(use)];
}

/// The account of one member after some steps, and the bytes of its model and largest unit.
struct held_memory {
  account_statistics account;
  sharding_statistics own;
  std::size_t model = 0, unit = 0;
  std::size_t state = 0;  ///< of the optimizer
};

std::vector<held_memory> train_and_measure(const trained_example& example, int num_members,
                                           fully_sharded_options options) {
  std::vector<held_memory> result(static_cast<std::size_t>(num_members));
  on_members(num_members, [&](communicator& group) {
    auto account = memory_account::make();
    account_scope charged(account);
    auto model = options.seed ? example.make() : materialized(example);
    FullyShardedDataParallel sharded(*model, group, options);
    auto optimizer = sharded.make_optimizer(optim::Adam());
    if (!options.seed) account.reset_peak();
    std::vector<float> losses;
    for (std::uint64_t step = 0; step < 3; ++step) {
      run_sharded_passes(sharded, example, {.num_replicas = num_members}, step, losses);
      optimizer->apply(step);
    }
    auto& held = result[static_cast<std::size_t>(group.rank())];
    held = {account.statistics(), sharded.statistics(), bytes_of(*model)};
    for (const auto& each : optimizer->state()) held.state += each.value.size_bytes();
    for (const auto& [name, bytes] : sharded.units()) held.unit = std::max(held.unit, bytes);
  });
  return result;
}

}  // namespace

TEST_CASE(
    "a member holds its part of everything, and blocks for two units of values and three of gradients") {
  for (int ahead : {0, 1, 3}) {
    auto all = train_and_measure(stack(12), 4, {.unit_size_mb = 0.001, .gather_ahead = ahead, .seed = 7});
    for (const auto& each : all) {
      CAPTURE(ahead, each.model, each.unit, each.own.own_parameters);
      REQUIRE(each.unit * 12 >= each.model);
      auto part = each.model / 4 + each.unit;
      auto value_blocks = static_cast<std::size_t>(1 + ahead) * each.unit;
      CHECK(each.own.own_parameters <= part);
      CHECK(each.own.own_gradients <= part);
      CHECK(used(each.account, memory_use::optimizer) <= 2 * part);
      // Initialization has a unit and a parameter beside what is cut already.
      CHECK(peak(each.account, memory_use::parameters) <= part + value_blocks + 3 * each.unit);
      CHECK(peak(each.account, memory_use::gradients) <= part + 4 * each.unit);
      CHECK(each.own.blocks <=
            value_blocks + 4 * each.unit);  // a call may end a moment after it is waited for
      CHECK(each.own.gathered == 0);
    }
  }
}

TEST_CASE("what members will hold is known before") {
  const std::vector<trained_example> examples{stack(12, 192), images()};
  for (auto strategy : {shard_strategy::full, shard_strategy::grad, shard_strategy::optimizer})
    for (const auto& example : examples) {
      fully_sharded_options options{.strategy = strategy, .unit_size_mb = 0.01, .gather_ahead = 2};
      if (&example != &examples[0]) {
        options.units = {"4", "6"};
        options.reshard_after_forward = false;
      }
      auto described = example.make();
      auto expected = estimate_sharding(*described, optim::Adam(), 4, options);
      auto all = train_and_measure(example, 4, options);
      REQUIRE(expected.size() == all.size());
      for (std::size_t member = 0; member < all.size(); ++member) {
        const auto& held = all[member];
        const auto& known = expected[member];
        CAPTURE(to_string(strategy), member);
        if (strategy == shard_strategy::full) CHECK(held.own.own_parameters == known.parameters);
        if (strategy != shard_strategy::optimizer) CHECK(held.own.own_gradients == known.gradients);
        CHECK(held.state == known.optimizer);
        CHECK(held.own.blocks <= known.blocks + held.unit);
        if (&example != &examples[0]) continue;  // of equal units all blocks are used; others are a bound
        // The allocator rounds up.
        auto measured = static_cast<double>(peak(held.account, memory_use::parameters) +
                                            peak(held.account, memory_use::gradients) +
                                            used(held.account, memory_use::optimizer));
        CHECK(measured <= 1.15 * static_cast<double>(known.total()));
        CHECK(static_cast<double>(known.total()) <= 1.15 * measured);
      }
    }
  CHECK_THROWS_AS(estimate_sharding(*stack(2).make(), optim::Adam(), 0), std::invalid_argument);
  CHECK_THROWS_AS(estimate_sharding(*stack(2).make(), optim::Adam(), 2, {.num_replicas = 3}),
                  std::invalid_argument);
}

TEST_CASE("parts of units that do not divide evenly make up for each other") {
  auto all = train_and_measure(images(), 4, {.unit_size_mb = 0.001});
  std::size_t most = 0, sum = 0, largest_parameter = 77 * 333 * sizeof(float);
  for (const auto& each : all) {
    most = std::max(most, each.own.own_parameters);
    sum += each.own.own_parameters;
  }
  CHECK(sum >= all[0].model);
  CHECK(most <= all[0].model / 4 + largest_parameter);
  for (const auto& each : train_and_measure(stack(12), 3, {.unit_size_mb = 0.001}))
    CHECK(each.own.own_parameters <= each.model / 3 + each.unit);
}

TEST_CASE("each strategy divides what it says") {
  auto of = [](shard_strategy strategy) {
    return train_and_measure(stack(12), 4, {.strategy = strategy, .unit_size_mb = 0.001})[1];
  };
  auto full = of(shard_strategy::full), grad = of(shard_strategy::grad),
       state = of(shard_strategy::optimizer);
  auto part = full.model / 4 + full.unit;
  CHECK(used(full.account, memory_use::parameters) <= part + 2 * full.unit + full.own.blocks);
  for (const auto* whole : {&grad, &state}) {
    CHECK(used(whole->account, memory_use::parameters) >= whole->model);
    CHECK(used(whole->account, memory_use::optimizer) <= 2 * part);
    CHECK(whole->own.gathered >= whole->model);
  }
  CHECK(used(grad.account, memory_use::gradients) <= part + 4 * grad.unit);
  CHECK(used(state.account, memory_use::gradients) >= state.model);
}

TEST_CASE("a pass gathers each unit once, and a forward pass that keeps values half as often") {
  auto gathers_of = [](bool reshards) {
    std::uint64_t result = 0;
    on_members(2, [&](communicator& group) {
      auto example = stack(12);
      auto model = materialized(example);
      FullyShardedDataParallel sharded(*model, group,
                                       {.unit_size_mb = 0.001, .reshard_after_forward = reshards});
      auto optimizer = sharded.make_optimizer(optim::SGD({.lr = 0.1}));
      std::vector<float> losses;
      auto train = [&](std::uint64_t step) {
        run_sharded_passes(sharded, example, {.num_replicas = 2}, step, losses);
        optimizer->apply(step);
      };
      train(0);
      auto before = sharded.statistics().num_gathers;
      for (std::uint64_t step = 1; step < 5; ++step) train(step);
      if (group.rank() == 0) result = sharded.statistics().num_gathers - before;
    });
    return result / 4;
  };
  // The last unit of the forward pass is the first of the backward pass, which does not read the first one.
  CHECK(gathers_of(true) == 12 + 10);
  CHECK(gathers_of(false) == 12);
}

TEST_CASE("evaluations gather unit by unit, keep nothing, and leave training as it is") {
  auto whole = train_whole(images(), {.num_replicas = 2, .num_steps = 4});
  std::vector<named_tensor> weights;
  std::mutex checking;
  on_members(2, [&](communicator& group) {
    auto example = images();
    auto model = materialized(example);
    FullyShardedDataParallel sharded(*model, group, {.unit_size_mb = small_units});
    auto optimizer = sharded.make_optimizer(optim::Adam({.lr = 1e-2}));
    std::vector<float> losses;
    for (std::uint64_t step = 0; step < 4; ++step) {
      run_sharded_passes(sharded, example, {.num_replicas = 2}, step, losses);
      optimizer->apply(step);
      model->eval();
      auto batch = batch_of(step, 0);
      tensor by_shards;
      {
        no_grad evaluates;
        by_shards = sharded.forward({batch.samples}).value;
      }
      auto gathered = sharded.statistics().gathered;
      auto copy = example.make();
      copy->materialize(1);
      copy->load_state_dict(sharded.state_dict());
      copy->eval();
      std::lock_guard lock(checking);
      CHECK(gathered == 0);
      CHECK(same_bits(by_shards, copy->forward({batch.samples}).value));
      model->train();
    }
    auto last = sharded.state_dict();
    std::lock_guard lock(checking);
    if (group.rank() == 0) weights = std::move(last);
  });
  CHECK(same_bits(weights, whole.weights));
}
