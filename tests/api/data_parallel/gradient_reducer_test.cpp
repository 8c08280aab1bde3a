#include "troupe/data_parallel/gradient_reducer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

#include "api/data_parallel/replicated_model.hpp"
#include "support/bits.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// The identity, whose backward pass ends when the group has begun a reduction.
class waits_for_reduction : public operation {
 public:
  waits_for_reduction(communicator& group, bool& has_come) : group_(group), has_come_(has_come) {}

  std::vector<tensor> backward_input(const tensor& dy) override {
    auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    auto is_there = [&] { return group_.recent_calls().find("all_reduce") != std::string::npos; };
    while (!(has_come_ = is_there()) && std::chrono::steady_clock::now() < latest) std::this_thread::yield();
    return {dy};
  }

 private:
  communicator& group_;
  bool& has_come_;
};

}  // namespace

TEST_CASE("gradients are reduced before others of their bucket are ready") {
  nn::Linear first(4, 5), last(5, 40000);
  nn::Sequential model(first, last);
  model.materialize(1);
  auto members = collective::make_local_group(1);
  auto& group = *members[0];
  // One bucket; the last layer alone is more than one chunk of it.
  DataParallel replicated(model, group, {.bucket_size_mb = 0.1, .first_bucket_mb = 1});
  bool has_come = false;
  auto parameters = model.parameters();
  auto hidden = linear({random_tensor({2, 4}, "x")}, *parameters[0], parameters[1]);
  auto between = record(hidden.value, {hidden}, std::make_unique<waits_for_reduction>(group, has_come));
  auto y = linear(between, *parameters[2], parameters[3]);
  replicated.backward(nn::CrossEntropy()(y, tensor::zeros({2}, dtype::i64), 0.5).loss);
  CHECK(has_come);
}

TEST_CASE("large weights, whose rows are sent when ready, have the same bits wherever the replicas run") {
  auto train_wide = [](int num_members, int replicas) {
    tensor result;
    on_members(num_members, [&](communicator& group) {
      nn::Sequential model(nn::Linear(20, 1100), nn::Linear(1100, 1100), nn::Linear(1100, 3));
      model.materialize(5);
      DataParallel replicated(model, group, {.bucket_size_mb = 0.5, .num_replicas = replicas});
      auto optimizer = replicated.make_optimizer(optim::SGD({.lr = 0.1}));
      for (std::uint64_t step = 0; step < 4; ++step) {
        for (int replica : replicated.own_replicas()) {
          auto x = random_tensor({2, 20}, std::to_string(step) + "." + std::to_string(replica));
          replicated.backward(
              nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss);
        }
        optimizer->apply(step);
      }
      optimizer->synchronize();
      if (group.rank() == 0) result = model.parameters()[2]->value().clone();
    });
    return result;
  };
  auto four = train_wide(1, 4), six = train_wide(1, 6);
  for (int members : {2, 3, 4}) CHECK(same_bits(train_wide(members, 4), four));
  CHECK(same_bits(train_wide(2, 6), six));  // two nodes of the tree on each
}

TEST_CASE("weights stepped chunk by chunk have the same bits as weights stepped together") {
  auto train_wide = [](stepping mode, const optim::Optimizer& kind, bool views) {
    std::vector<named_tensor> result;
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(20, 300), nn::Linear(300, 300), nn::Linear(300, 3));
      model.materialize(5);
      DataParallel replicated(model, group, {.bucket_size_mb = 0.1, .gradient_as_bucket_view = views});
      auto optimizer = optimizer_of(replicated, mode, kind);
      for (std::uint64_t step = 0; step < 4; ++step) {
        auto x = random_tensor({2, 20}, std::to_string(step) + "." + std::to_string(group.rank()));
        replicated.backward(
            nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss);
        optimizer->apply(step);
      }
      if (group.rank() != 0) return;
      result = copy_of(model.state_dict());
      for (auto& each : copy_of(optimizer->state())) result.push_back(std::move(each));
    });
    return result;
  };
  for (const optim::Optimizer& kind :
       {optim::Optimizer(optim::AdamW({.lr = 1e-2})), optim::Optimizer(optim::LAMB()),
        optim::Optimizer(optim::SGD({.lr = 0.1, .momentum = 0.9}))}) {
    auto expected = train_wide(stepping::together, kind, true);
    CHECK(same_bits(train_wide(stepping::overlapped, kind, true), expected));
    CHECK(same_bits(train_wide(stepping::overlapped, kind, false), expected));
  }
}
