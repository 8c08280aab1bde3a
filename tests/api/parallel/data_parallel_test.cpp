#include "troupe/parallel/data_parallel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <mutex>

#include "api/parallel/replicated_model.hpp"
#include "support/bits.hpp"
#include "troupe/parallel/replica_mean.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

struct outcome {
  std::vector<named_tensor> weights;
  std::vector<float> losses;
};

/// Trains as one member for some steps; what member 0 has at the end.
outcome train(int num_members, data_parallel_options options) {
  outcome result;
  on_members(num_members, [&](communicator& group) {
    auto model = small_model();
    DataParallel replicated(model, group, options);
    auto optimizer = optim::Adam({.lr = 1e-2})(model.named_parameters());
    for (std::uint64_t step = 0; step < 4; ++step) {
      std::vector<tensor> losses;
      for (int i = 0; i < options.replicas_per_rank; ++i) losses.push_back(run_replica(replicated, step));
      optimizer->apply(step);
      auto loss = mean_over_replicas(losses, group);
      if (group.rank() == 0) result.losses.push_back(loss.values<float>()[0]);
    }
    if (group.rank() == 0) result.weights = model.state_dict();
  });
  return result;
}

void check_same(const outcome& a, const outcome& b) {
  CHECK(a.losses == b.losses);
  CHECK(same_bits(a.weights, b.weights));
}

}  // namespace

TEST_CASE("losses and weights have the same bits wherever the virtual replicas run") {
  auto alone = train(1, {.replicas_per_rank = 4});
  CHECK(alone.losses.front() != alone.losses.back());
  check_same(train(2, {.replicas_per_rank = 2}), alone);
  check_same(train(4, {}), alone);
  auto eight = train(1, {.replicas_per_rank = 8});
  check_same(train(2, {.replicas_per_rank = 4}), eight);
  CHECK_FALSE(same_bits(eight.weights, alone.weights));
}

TEST_CASE("groups of three members and one member with three replicas agree to the bit") {
  check_same(train(3, {}), train(1, {.replicas_per_rank = 3}));
}

TEST_CASE("neither the sizes of buckets nor where gradients live changes a bit") {
  auto expected = train(4, {});
  check_same(train(4, {.bucket_size_mb = 0.001, .first_bucket_mb = 0}), expected);
  check_same(train(4, {.gradient_as_bucket_view = false}), expected);
  check_same(train(2, {.bucket_size_mb = 0,
                       .first_bucket_mb = 0,
                       .replicas_per_rank = 2,
                       .gradient_as_bucket_view = false}),
             expected);
  check_same(train(2, {.replicas_per_rank = 2, .find_unused_parameters = true}), expected);
}

TEST_CASE("running statistics follow the first replica, or each replica keeps its own") {
  for (bool are_shared : {true, false}) {
    std::mutex collecting;
    std::vector<named_tensor> found(4);
    on_members(2, [&](communicator& group) {
      auto model = small_model();
      DataParallel replicated(model, group, {.replicas_per_rank = 2, .broadcast_buffers = are_shared});
      for (std::uint64_t step = 0; step < 3; ++step)
        for (int i = 0; i < 2; ++i) run_replica(replicated, step);
      // The next step's forward pass distributes the shared values.
      replicated.forward({batch_of(3, replicated.current_replica()).samples});
      std::lock_guard lock(collecting);
      for (const auto& each : replicated.state())
        for (int replica = 0; replica < 4; ++replica)
          if (each.name == "replica." + std::to_string(replica) + "/1.running_mean")
            found[static_cast<std::size_t>(replica)] = {each.name, each.value.clone()};
    });
    for (const auto& each : found) REQUIRE(each.value.defined());
    // Replicas 1 and 3 have had no forward since then; their statistics are those that were shared.
    CHECK(same_bits(found[1].value, found[3].value) == are_shared);
    CHECK_FALSE(same_bits(found[0].value, found[1].value));
  }
}

TEST_CASE("backward passes within no_sync add up to the gradient of one pass over all samples") {
  tensor at_once, in_two;
  for (bool accumulates : {false, true}) {
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(6, 4));
      model.materialize(3);
      DataParallel replicated(model, group);
      auto x = random_tensor({8, 6}, "x" + std::to_string(group.rank()));
      auto labels = tensor::zeros({8}, dtype::i64);
      auto pass = [&](std::int64_t first, std::int64_t count) {
        auto found = nn::CrossEntropy()(replicated.forward({x.rows(first, count)}), labels.rows(first, count),
                                        1.0 / 8);
        replicated.backward(found.loss);
      };
      if (accumulates) {
        auto unsynced = replicated.no_sync();
        pass(0, 4);
      }
      accumulates ? pass(4, 4) : pass(0, 8);
      model.parameters()[0]->wait_ready();
      if (group.rank() == 1) (accumulates ? in_two : at_once) = model.parameters()[0]->gradient().clone();
    });
  }
  auto a = at_once.values<float>(), b = in_two.values<float>();
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-6F);
  CHECK(std::abs(a[0]) > 1e-4F);
}

TEST_CASE("gradients of passes that the program ran itself are averaged by sync_gradients") {
  std::vector<tensor> found(2);
  for (bool by_hand : {false, true})
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(6, 4));
      model.materialize(3);
      DataParallel replicated(model, group);
      auto loss =
          nn::CrossEntropy()(replicated.forward({random_tensor({2, 6}, std::to_string(group.rank()))}),
                             tensor::zeros({2}, dtype::i64), 0.5)
              .loss;
      if (by_hand) {
        loss.backward(replicated.initial_gradient());
        replicated.sync_gradients();
      } else {
        replicated.backward(loss);
      }
      model.parameters()[0]->wait_ready();
      if (group.rank() == 0) found[by_hand] = model.parameters()[0]->gradient().clone();
    });
  CHECK(same_bits(found[0], found[1]));
}

TEST_CASE("sync_parameters brings the weights of member 0 to all") {
  std::vector<tensor> weights(3);
  on_members(3, [&](communicator& group) {
    nn::Sequential model(nn::Linear(6, 4));
    model.materialize(static_cast<std::uint64_t>(100 + group.rank()));
    DataParallel replicated(model, group);
    weights[static_cast<std::size_t>(group.rank())] = model.parameters()[0]->value();
  });
  nn::Sequential first(nn::Linear(6, 4));
  first.materialize(100);
  for (const auto& each : weights) CHECK(same_bits(each, first.parameters()[0]->value()));
}
