#include "troupe/data_parallel/comm_hook.hpp"

#include <catch2/catch_test_macros.hpp>
#include <mutex>

#include "api/data_parallel/replicated_model.hpp"
#include "support/bits.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Sums in the first of two rounds, and counts what is asked of it.
class two_rounds : public comm_hook {
 public:
  struct reduction : bucket_reduction {
    reduction(gradient_bucket& of, communicator& in) : bucket(of), group(in) {
      round = all_reduce_leaves(bucket, group);
    }
    bool proceed() override {
      round.wait();
      if (rounds++ == 1) return false;
      round = group.broadcast(bucket.sum, 0);
      return true;
    }
    gradient_bucket& bucket;
    communicator& group;
    work round;
    int rounds = 0;
  };

  void prepare(const std::vector<gradient_bucket>& buckets) override {
    prepared = buckets;
    count = tensor::zeros({1});
  }
  std::unique_ptr<bucket_reduction> begin(gradient_bucket& bucket, communicator& group) override {
    order.push_back(bucket.index);
    count.values<float>()[0] += 1;
    return std::make_unique<reduction>(bucket, group);
  }
  std::vector<named_tensor> state() override {
    return {{"replica." + std::to_string(prepared.front().own_replicas.front()) + "/count", count}};
  }

  std::vector<gradient_bucket> prepared;
  std::vector<int> order;
  tensor count;
};

struct hook_outcome {
  std::vector<named_tensor> weights;
  std::vector<int> order;
  std::vector<std::string> state;
  float count = 0;
};

hook_outcome train_with_hook(bool with_hook, int num_replicas) {
  hook_outcome result;
  on_members(2, [&](communicator& group) {
    auto model = small_model();
    DataParallel replicated(model, group,
                            {.bucket_size_mb = 0, .first_bucket_mb = 0, .num_replicas = num_replicas});
    auto hook = std::make_shared<two_rounds>();
    if (with_hook) replicated.register_comm_hook(hook);
    auto optimizer = optim::Adam()(model.named_parameters());
    for (std::uint64_t step = 0; step < 3; ++step) {
      run_replicas(replicated, step);
      optimizer->apply(step);
    }
    if (group.rank() != 1) return;
    result.weights = model.state_dict();
    result.order = hook->order;
    if (with_hook) result.count = hook->count.values<float>()[0];
    for (const auto& each : replicated.state()) result.state.push_back(each.name);
  });
  return result;
}

}  // namespace

TEST_CASE("a hook reduces every bucket in order, in as many rounds as it likes, to the same bits") {
  for (int replicas : {2, 3, 4, 6}) {
    auto hooked = train_with_hook(true, replicas);
    CHECK(same_bits(hooked.weights, train_with_hook(false, replicas).weights));
    REQUIRE(hooked.order.size() == 24);  // eight parameters, three steps
    for (std::size_t i = 0; i < hooked.order.size(); ++i) CHECK(hooked.order[i] == static_cast<int>(i % 8));
  }
}

TEST_CASE("what a hook carries from step to step is a part of the state, after the buffers") {
  auto hooked = train_with_hook(true, 4);
  CHECK(hooked.count == 24);
  CHECK(hooked.state == std::vector<std::string>{"replica.2/1.running_mean", "replica.2/1.running_var",
                                                 "replica.3/1.running_mean", "replica.3/1.running_var",
                                                 "replica.2/count"});
}

TEST_CASE("a hook sees the leaf of every replica, scaled so that their sum is the mean") {
  on_members(1, [&](communicator& group) {
    nn::Sequential model(nn::Linear(3, 2));
    model.materialize(1);
    DataParallel replicated(model, group, {.num_replicas = 2});
    auto hook = std::make_shared<two_rounds>();
    replicated.register_comm_hook(hook);
    REQUIRE(hook->prepared.size() == 1);
    const auto& bucket = hook->prepared.front();
    REQUIRE(bucket.leaves.size() == 2);
    CHECK(bucket.replicas->num_leaves() == 2);
    CHECK(bucket.own_replicas == std::vector<int>{0, 1});
    CHECK(bucket.parts.front().parameter == "0.bias");
    CHECK(bucket.parts.back().extents == shape{2, 3});
    for (int i = 0; i < 2; ++i) {
      auto x = random_tensor({1, 3}, std::to_string(i));
      auto loss = nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({1}, dtype::i64), 1).loss;
      replicated.backward(loss);
    }
    auto x = random_tensor({1, 3}, "1");
    model.parameters()[0]->has_gradient = model.parameters()[1]->has_gradient = false;
    auto last = bucket.leaves[1].clone();
    nn::CrossEntropy()(model.forward({x}), tensor::zeros({1}, dtype::i64), 1)
        .loss.backward(tensor::full({}, 0.5F));
    CHECK(same_bits(last.rows(16, 6), model.parameters()[0]->gradient().reshape({6})));
  });
}
