#include "troupe/data_parallel/data_parallel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <mutex>
#include <numeric>

#include "api/data_parallel/replicated_model.hpp"
#include "support/bits.hpp"
#include "troupe/data_parallel/replica_mean.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

struct training_outcome {
  std::vector<named_tensor> weights;
  std::vector<float> losses;
};

/// Trains as one member for some steps; what member 0 has at the end.
training_outcome train_members(int num_members, data_parallel_options options) {
  training_outcome result;
  on_members(num_members, [&](communicator& group) {
    auto model = small_model();
    DataParallel replicated(model, group, options);
    auto optimizer = optim::Adam({.lr = 1e-2})(model.named_parameters());
    for (std::uint64_t step = 0; step < 4; ++step) {
      auto losses = run_replicas(replicated, step);
      optimizer->apply(step);
      auto loss = mean_over_replicas(losses, group);
      if (group.rank() == 0) result.losses.push_back(loss.values<float>()[0]);
    }
    if (group.rank() == 0) result.weights = model.state_dict();
  });
  return result;
}

void check_same_training(const training_outcome& a, const training_outcome& b) {
  CHECK(a.losses == b.losses);
  CHECK(same_bits(a.weights, b.weights));
}

}  // namespace

TEST_CASE("losses and weights have the same bits wherever the virtual replicas run") {
  std::vector<training_outcome> alone;
  for (int replicas = 1; replicas <= 8; ++replicas)
    alone.push_back(train_members(1, {.num_replicas = replicas}));
  for (int members = 2; members <= 5; ++members)
    for (int replicas = 1; replicas <= 8; ++replicas) {
      CAPTURE(members, replicas);
      check_same_training(train_members(members, {.num_replicas = replicas}),
                          alone[static_cast<std::size_t>(replicas - 1)]);
    }
  CHECK(alone[3].losses.front() != alone[3].losses.back());
  CHECK_FALSE(same_bits(alone[7].weights, alone[3].weights));
}

TEST_CASE("a group has a replica on each member by default") {
  for (int members : {2, 3})
    check_same_training(train_members(members, {}), train_members(1, {.num_replicas = members}));
}

TEST_CASE("replicas are spread in blocks, and a member without any takes part but makes no passes") {
  std::vector<std::vector<int>> own(4);
  std::vector<std::string> told(4);
  on_members(4, [&](communicator& group) {
    auto model = small_model();
    DataParallel replicated(model, group, {.num_replicas = 3});
    auto at = static_cast<std::size_t>(group.rank());
    own[at] = replicated.own_replicas();
    if (own[at].empty())
      told[at] = error_of([&] { replicated.forward({batch_of(0, 0).samples}); }) + '\n' +
                 error_of([&] { replicated.backward({tensor::full({}, 1)}); });
    run_replicas(replicated, 0);
    model.train(false);
    replicated.forward({batch_of(0, 0).samples});
    model.parameters()[0]->wait_ready();
  });
  CHECK(own == std::vector<std::vector<int>>{{0}, {1}, {2}, {}});
  auto refused =
      "[DataParallel] expected passes on members with virtual replicas, got one on rank 3, which has none of "
      "the 3: call sync_gradients() once a step where own_replicas() is empty";
  CHECK(told[3] == std::string(refused) + '\n' + refused);
  on_members(3, [&](communicator& group) {
    auto model = small_model();
    DataParallel replicated(model, group, {.num_replicas = 7});
    own[static_cast<std::size_t>(group.rank())] = replicated.own_replicas();
  });
  own.pop_back();
  CHECK(own == std::vector<std::vector<int>>{{0, 1, 2}, {3, 4}, {5, 6}});
}

TEST_CASE("means over replicas have the bits of one member, for any numbers on the members") {
  auto metric = [](int replica) { return random_tensor({3}, std::to_string(replica)); };
  auto mean_on = [&](const std::vector<int>& counts) {
    tensor result;
    on_members(static_cast<int>(counts.size()), [&](communicator& group) {
      auto at = counts.begin() + group.rank();
      auto first = std::accumulate(counts.begin(), at, 0);
      std::vector<tensor> own;
      for (int i = 0; i < *at; ++i) own.push_back(metric(first + i));
      auto found = mean_over_replicas(own, group);
      static std::mutex checking;
      std::lock_guard lock(checking);
      for (int i = 0; i < *at; ++i) CHECK(same_bits(own[static_cast<std::size_t>(i)], metric(first + i)));
      if (group.rank() + 1 == group.size()) result = found;
    });
    return result;
  };
  auto alone = mean_on({6});
  CHECK(alone.shape() == shape{3});
  for (const auto& counts :
       std::vector<std::vector<int>>{{1, 5}, {3, 3}, {2, 0, 4}, {0, 6}, {6, 0}, {1, 1, 1, 1, 2}})
    CHECK(same_bits(mean_on(counts), alone));
}

TEST_CASE("metrics whose shapes differ between members, or that nobody has, are refused on all") {
  std::vector<std::string> differ(2), none(2);
  on_members(2, [&](communicator& group) {
    auto at = static_cast<std::size_t>(group.rank());
    differ[at] = error_of([&] { mean_over_replicas({tensor::zeros({group.rank() + 1})}, group); });
    none[at] = error_of([&] { mean_over_replicas({}, group); });
  });
  for (int i : {0, 1}) {
    CHECK(differ[static_cast<std::size_t>(i)] ==
          "[mean_over_replicas] expected one shape on all ranks, got [1] on rank 0, [2] on rank 1");
    CHECK(none[static_cast<std::size_t>(i)] ==
          "[mean_over_replicas] expected a tensor from at least one member, got none from any");
  }
}

TEST_CASE("neither the sizes of buckets nor where gradients live changes a bit") {
  auto expected = train_members(4, {});
  check_same_training(train_members(4, {.bucket_size_mb = 0.001, .first_bucket_mb = 0}), expected);
  check_same_training(train_members(4, {.gradient_as_bucket_view = false}), expected);
  check_same_training(
      train_members(
          2,
          {.bucket_size_mb = 0, .first_bucket_mb = 0, .num_replicas = 4, .gradient_as_bucket_view = false}),
      expected);
  check_same_training(train_members(2, {.num_replicas = 4, .find_unused_parameters = true}), expected);
  // With several nodes of the tree on a member, and with members that have none.
  auto six = train_members(1, {.num_replicas = 6}), three = train_members(1, {.num_replicas = 3});
  for (bool are_views : {false, true}) {
    data_parallel_options options{
        .bucket_size_mb = 0.001, .first_bucket_mb = 0, .gradient_as_bucket_view = are_views};
    options.find_unused_parameters = !are_views;
    options.num_replicas = 6;
    check_same_training(train_members(2, options), six);
    options.num_replicas = 3;
    check_same_training(train_members(5, options), three);
  }
}

TEST_CASE("running statistics follow the first replica, or each replica keeps its own") {
  for (bool are_shared : {true, false}) {
    std::mutex collecting;
    std::vector<named_tensor> found(4);
    on_members(2, [&](communicator& group) {
      auto model = small_model();
      DataParallel replicated(model, group, {.num_replicas = 4, .broadcast_buffers = are_shared});
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
    model.materialize(100 + static_cast<std::uint64_t>(group.rank()));
    DataParallel replicated(model, group);
    weights[static_cast<std::size_t>(group.rank())] = model.parameters()[0]->value();
  });
  nn::Sequential first(nn::Linear(6, 4));
  first.materialize(100);
  for (const auto& each : weights) CHECK(same_bits(each, first.parameters()[0]->value()));
}
