// What holds for every hook.
#include <catch2/catch_test_macros.hpp>

#include "api/data_parallel/hooks/hooked_bucket.hpp"
#include "troupe/data_parallel/hooks/half_precision_gradients.hpp"
#include "troupe/data_parallel/hooks/local_sgd.hpp"
#include "troupe/data_parallel/hooks/power_sgd.hpp"
#include "troupe/data_parallel/hooks/top_k_gradients.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using hook_maker = std::function<std::shared_ptr<comm_hook>()>;

const std::vector<std::pair<std::string, hook_maker>>& hooks() {
  static const std::vector<std::pair<std::string, hook_maker>> all{
      {"bf16", [] { return std::make_shared<half_precision_gradients>(); }},
      {"f16", [] { return std::make_shared<half_precision_gradients>(dtype::f16); }},
      {"top-k",
       [] {
         return std::make_shared<top_k_gradients>(
             top_k_gradients_options{.ratio = 0.1, .min_compressed_elements = 0});
       }},
      {"top-k with momentum",
       [] {
         return std::make_shared<top_k_gradients>(top_k_gradients_options{
             .ratio = 0.1, .min_compressed_elements = 20, .momentum = 0.5, .dense_steps = 1});
       }},
      {"PowerSGD",
       [] { return std::make_shared<power_sgd>(power_sgd_options{.rank = 2, .dense_steps = 1}); }},
  };
  return all;
}

constexpr int num_replicas = 6;

struct outcome {
  std::vector<tensor> sums;             // by step
  std::map<std::string, tensor> state;  // of all members
};

/// Reduces random gradients of the replicas in steps [first, last), beginning with `state`.
outcome run(const hook_maker& make, int num_members, int first, int last,
            const std::map<std::string, tensor>& state = {}) {
  outcome result;
  std::mutex collecting;
  on_members(num_members, [&](communicator& group) {
    auto bucket = bucket_of(group, {{"a", {17, 23}}, {"b", {9}}, {"c", {24, 3, 5}}}, num_replicas);
    auto hook = make();
    hook->prepare({bucket});
    for (auto& each : hook->state())
      if (!state.empty()) each.value.copy_from(state.at(each.name));
    for (int step = first; step < last; ++step) {
      for (std::size_t i = 0; i < bucket.leaves.size(); ++i)
        for (const auto& part : bucket.parts) {
          auto replica = bucket.own_replicas[i];
          auto name = part.parameter + std::to_string(step) + "." + std::to_string(replica);
          part_of(bucket.leaves[i], part).copy_from(random_tensor(part.extents, name));
        }
      reduce(*hook, bucket, group);
      std::lock_guard lock(collecting);
      if (group.rank() == num_members - 1) result.sums.push_back(bucket.sum.clone());
    }
    std::lock_guard lock(collecting);
    for (const auto& each : hook->state()) result.state[each.name] = each.value.clone();
  });
  return result;
}

bool same(const std::map<std::string, tensor>& a, const std::map<std::string, tensor>& b) {
  return std::ranges::equal(
      a, b, [](const auto& x, const auto& y) { return x.first == y.first && same_bits(x.second, y.second); });
}

bool same(const std::vector<tensor>& a, const std::vector<tensor>& b) {
  return std::ranges::equal(a, b, [](const tensor& x, const tensor& y) { return same_bits(x, y); });
}

/// The loss of a small classifier that is trained on eight samples for each replica: first and last.
std::pair<float, float> train(const hook_maker& make, int num_members, std::vector<named_tensor>& weights) {
  std::pair<float, float> losses;
  on_members(num_members, [&](communicator& group) {
    nn::Sequential model(nn::Linear(40, 32), nn::Linear(32, 10));
    model.materialize(5);
    DataParallel replicated(model, group, {.bucket_size_mb = 0, .num_replicas = num_replicas});
    replicated.register_comm_hook(make());
    auto optimizer = optim::SGD({.lr = 0.3})(model.named_parameters());
    for (std::uint64_t step = 0; step < 60; ++step) {
      float loss = 0;
      if (replicated.own_replicas().empty()) replicated.sync_gradients();
      for (int replica : replicated.own_replicas()) {
        auto x = random_tensor({8, 40}, std::to_string(replica));
        auto labels = tensor::zeros({8}, dtype::i64);
        for (int sample = 0; sample < 8; ++sample)
          labels.values<std::int64_t>()[static_cast<std::size_t>(sample)] = (sample + replica) % 10;
        auto found = nn::CrossEntropy()(replicated.forward({x}), labels, 1.0 / 8).loss;
        replicated.backward(found);
        loss += found.value.values<float>()[0];
      }
      optimizer->apply(step);
      if (group.rank() == num_members - 1) (step == 0 ? losses.first : losses.second) = loss;
    }
    if (group.rank() == num_members - 1) weights = model.state_dict();
  });
  return losses;
}

}  // namespace

TEST_CASE("sums and the state of hooks have the same bits wherever the replicas run") {
  for (const auto& [name, make] : hooks()) {
    CAPTURE(name);
    auto alone = run(make, 1, 0, 5);
    REQUIRE(alone.sums.size() == 5);
    for (int members : {2, 3, 4, 6, 7}) {
      CAPTURE(members);
      auto found = run(make, members, 0, 5);
      CHECK(same(found.sums, alone.sums));
      CHECK(same(found.state, alone.state));
    }
  }
}

TEST_CASE("hooks restored from their state give the same bits") {
  for (const auto& [name, make] : hooks()) {
    CAPTURE(name);
    auto through = run(make, 2, 0, 6);
    auto before = run(make, 2, 0, 3);
    auto after = run(make, 4, 3, 6, before.state);
    CHECK(same(after.sums, {through.sums.begin() + 3, through.sums.end()}));
    CHECK(same(after.state, through.state));
    if (before.state.empty()) continue;
    // And the state does matter.
    CHECK_FALSE(same(run(make, 4, 3, 6).sums, after.sums));
  }
}

TEST_CASE("models learn with every hook, to the same bits whatever the number of members") {
  for (const auto& [name, make] : hooks()) {
    CAPTURE(name);
    std::vector<named_tensor> alone, together;
    auto losses = train(make, 1, alone);
    CAPTURE(losses.first, losses.second);
    CHECK(losses.second < losses.first / 4);
    for (int members : {2, 4, 7}) {
      train(make, members, together);
      CHECK(same_bits(together, alone));
    }
  }
}
