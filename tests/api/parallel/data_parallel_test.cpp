#include "troupe/parallel/data_parallel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>

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

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("losses and weights have the same bits whoever hosts the virtual replicas") {
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
      // The next step's forward brings what is shared.
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
      if (group.rank() == 1) (accumulates ? in_two : at_once) = model.parameters()[0]->gradient.clone();
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
      if (group.rank() == 0) found[by_hand] = model.parameters()[0]->gradient.clone();
    });
  CHECK(same_bits(found[0], found[1]));
}

TEST_CASE("sync_parameters brings the weights of member 0 to all") {
  std::vector<tensor> weights(3);
  on_members(3, [&](communicator& group) {
    nn::Sequential model(nn::Linear(6, 4));
    model.materialize(static_cast<std::uint64_t>(100 + group.rank()));
    DataParallel replicated(model, group);
    weights[static_cast<std::size_t>(group.rank())] = model.parameters()[0]->value;
  });
  nn::Sequential first(nn::Linear(6, 4));
  first.materialize(100);
  for (const auto& each : weights) CHECK(same_bits(each, first.parameters()[0]->value));
}

TEST_CASE("models that differ are refused on every member, with rank, parameter and shapes") {
  std::vector<std::string> told(3);
  on_members(3, [&](communicator& group) {
    nn::Sequential model(nn::Linear(6, 4), nn::Linear(4, group.rank() == 2 ? 3 : 2));
    model.materialize(1);
    told[static_cast<std::size_t>(group.rank())] = error_of([&] { DataParallel(model, group); });
  });
  for (const auto& each : told)
    CHECK(each ==
          "[DataParallel] expected the same model and options on all ranks: rank 0 has 1.weight f32[2, 4], "
          "rank 2 has 1.weight f32[3, 4]");
}

TEST_CASE("models with more parameters, frozen ones or other options are refused too") {
  auto told = [](const std::function<void(int, nn::Sequential&, data_parallel_options&)>& differ) {
    std::vector<std::string> result(2);
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(6, 4));
      data_parallel_options options;
      if (group.rank() == 1) differ(1, model, options);
      model.materialize(1);
      result[static_cast<std::size_t>(group.rank())] = error_of([&] { DataParallel(model, group, options); });
    });
    CHECK(result[0] == result[1]);
    return result[0];
  };
  auto more = told([](int, nn::Sequential& model, auto&) { model.push_back(nn::Linear(4, 2)); });
  CHECK(more.find("rank 0 has no more parameters, rank 1 has 1.weight f32[2, 4]") != std::string::npos);
  auto frozen =
      told([](int, nn::Sequential& model, auto&) { model.parameters()[1]->requires_gradient = false; });
  CHECK(frozen.find("rank 0 has 0.bias f32[4], rank 1 has 0.bias f32[4], frozen") != std::string::npos);
  auto options = told([](int, auto&, data_parallel_options& own) { own.bucket_size_mb = 3; });
  CHECK(options.find("bucket_size_mb 3") != std::string::npos);
}

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

TEST_CASE("a parameter without a gradient is named to all members, and nobody hangs") {
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
      model.a.parameters()[0]->gradient.settle();
    });
  });
  CHECK(told[0].find("got none for b.weight, b.bias on rank 0") != std::string::npos);
  CHECK(told[0].find("find_unused_parameters") != std::string::npos);
  CHECK(told[1].find("brought no gradient for b.weight, b.bias") != std::string::npos);
}

TEST_CASE(
    "with find_unused_parameters an unused parameter counts as zeros, and one that nobody used is left "
    "alone") {
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
      bool same = same_bits(used.parameters()[0]->gradient, own.parameters()[0]->gradient);
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
      found[group.rank()].push_back({name, target->value});
  });
  CHECK(same_bits(found[0], found[1]));
  auto began = small_model();
  auto before = began.named_parameters();
  for (std::size_t i = 0; i < before.size(); ++i) {
    CAPTURE(before[i].name);
    CHECK(same_bits(found[0][i].value, before[i].target->value) == before[i].name.ends_with(".weight"));
  }
}

TEST_CASE("a loss that is no scalar is refused as that") {
  on_members(1, [](communicator& group) {
    auto model = small_model();
    DataParallel replicated(model, group);
    auto output = replicated.forward({batch_of(0, 0).samples});
    CHECK(error_of([&] { replicated.backward(output); }) ==
          "[DataParallel::backward] expected a scalar, the mean loss of this replica, got f32[3, 5]");
  });
}

TEST_CASE("a number of replicas that is no block of the tree is refused") {
  on_members(2, [&](communicator& group) {
    auto model = small_model();
    auto told = error_of([&] { DataParallel(model, group, {.replicas_per_rank = 3}); });
    static std::mutex checking;
    std::lock_guard lock(checking);
    CHECK(told.find("a power of two as the number of virtual replicas of each member, got 3") !=
          std::string::npos);
  });
}

TEST_CASE("a model without memory is refused by name") {
  on_members(1, [&](communicator& group) {
    nn::Sequential model(nn::Linear(2, 2));
    CHECK(error_of([&] { DataParallel(model, group); }).find("0.weight without memory") != std::string::npos);
  });
}
