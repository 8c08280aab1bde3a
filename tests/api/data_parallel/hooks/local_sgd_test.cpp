#include "troupe/data_parallel/hooks/local_sgd.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "api/data_parallel/hooks/hooked_bucket.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// The weights of each of two members after each step of a model on random samples.
std::vector<std::vector<tensor>> train(const local_sgd_options& options,
                                       std::vector<std::uint64_t>& averaged) {
  std::vector<std::vector<tensor>> weights(2);
  on_members(2, [&](communicator& group) {
    nn::Sequential model(nn::Linear(6, 4));
    model.materialize(1);
    DataParallel replicated(model, group);
    auto hook = std::make_shared<local_sgd>(options);
    replicated.register_comm_hook(hook);
    auto optimizer = optim::SGD({.lr = 0.1})(model.named_parameters());
    for (std::uint64_t step = 0; step < 6; ++step) {
      auto x = random_tensor({2, 6}, std::to_string(step) + "." + std::to_string(group.rank()));
      replicated.backward(
          nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss);
      optimizer->apply(step);
      if (hook->end_step(model, group) && group.rank() == 0) averaged.push_back(step);
      weights[static_cast<std::size_t>(group.rank())].push_back(model.parameters()[0]->value().clone());
    }
  });
  return weights;
}

}  // namespace

TEST_CASE("members train on their own gradients and average at every period") {
  std::vector<std::uint64_t> averaged;
  auto weights = train({.period = 3}, averaged);
  CHECK(averaged == std::vector<std::uint64_t>{2, 5});
  for (std::size_t step = 0; step < 6; ++step)
    CHECK(same_bits(weights[0][step], weights[1][step]) == (step % 3 == 2));
}

TEST_CASE("members stay together in the dense steps") {
  std::vector<std::uint64_t> averaged;
  auto weights = train({.period = 2, .dense_steps = 2}, averaged);
  CHECK(averaged == std::vector<std::uint64_t>{3, 5});
  for (std::size_t step : {0, 1, 3, 5}) CHECK(same_bits(weights[0][step], weights[1][step]));
  for (std::size_t step : {2, 4}) CHECK_FALSE(same_bits(weights[0][step], weights[1][step]));
}

TEST_CASE("with a period of one, averages of weights are steps along averages of gradients") {
  std::vector<std::uint64_t> averaged;
  auto local = train({.period = 1}, averaged);
  auto dense = train({.period = 1, .dense_steps = 6}, averaged);
  auto a = numbers(local[0].back()), b = numbers(dense[0].back());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-6F);
}

TEST_CASE("a member's own gradient is restored from its share of the mean") {
  on_members(4, [](communicator& group) {
    auto bucket = bucket_of(group, {{"w", {2}}});
    local_sgd hook;
    hook.prepare({bucket});
    auto own = static_cast<float>(group.rank());
    set(bucket.sum, {0.25F * own, 0.5F * own});
    reduce(hook, bucket, group);
    static std::mutex checking;
    std::lock_guard lock(checking);
    CHECK(numbers(bucket.sum.rows(0, 2)) == std::vector<float>{own, 2 * own});
  });
}

TEST_CASE("average_parameters gives every member the mean of all members' values") {
  for (int members : {1, 2, 4})
    on_members(members, [members](communicator& group) {
      nn::Sequential model(nn::Linear(3, 2));
      model.materialize(1);
      for (auto* each : model.parameters())
        each->value().copy_from(tensor::full(each->extents, static_cast<float>(group.rank())));
      average_parameters(model, group);
      static std::mutex checking;
      std::lock_guard lock(checking);
      for (auto* each : model.parameters())
        CHECK(same_bits(each->value(), tensor::full(each->extents, static_cast<float>(members - 1) / 2)));
    });
}

TEST_CASE("periods that never end and members with several replicas are refused") {
  CHECK_THROWS_AS(local_sgd({.period = 0}), std::invalid_argument);
  CHECK_THROWS_AS(local_sgd({.dense_steps = -1}), std::invalid_argument);
  auto members = collective::make_local_group(1);
  local_sgd hook;
  CHECK_THROWS_AS(hook.prepare({bucket_of(*members[0], {{"w", {2}}}, 2)}), std::invalid_argument);
}
