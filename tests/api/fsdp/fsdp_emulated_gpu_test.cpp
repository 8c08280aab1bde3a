// Sharded training on emulated GPUs, over the NCCL of tests.
#include <catch2/catch_test_macros.hpp>

#include "api/fsdp/sharded_training.hpp"
#include "runtime/collective/libraries/nccl_members.hpp"
#include "troupe/fsdp/sharded_copies.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr int num_steps = 3;

tensor labels_of(int step, int member) {
  std::vector<std::int64_t> labels;
  for (int i = 0; i < 4; ++i) labels.push_back((step + member + i) % 5);
  return tensor::from(labels, {4});
}

std::shared_ptr<nn::Sequential> model_on(device where) {
  auto model = std::make_shared<nn::Sequential>(nn::Linear(6, 50), nn::Linear(50, 31), nn::Linear(31, 5));
  model->materialize(3);
  model->to(where);
  return model;
}

template <class Replicated>
variable loss_of(Replicated& replicated, int step) {
  auto where = replicated.group().device();
  auto member = replicated.group().rank();
  auto samples = random_tensor({4, 6}, std::to_string(step) + "." + std::to_string(member)).to(where);
  return cross_entropy(replicated.forward({samples}), labels_of(step, member).to(where), 1.0 / 4).loss;
}

std::vector<named_tensor> on_cpu(const std::vector<named_tensor>& weights) {
  std::vector<named_tensor> result;
  for (const auto& each : weights) result.push_back({each.name, each.value.to({}).clone()});
  return result;
}

/// The weights of each member, which must be equal.
std::vector<named_tensor> trained(const std::function<std::vector<named_tensor>(communicator&)>& train) {
  std::vector<std::vector<named_tensor>> found(2);
  auto failures = run_nccl_members(2, [&](communicator& all, collective::store&) {
    found[static_cast<std::size_t>(all.rank())] = train(all);
  });
  CHECK(failures == std::vector<std::string>(2));
  check_nccl_is_unharmed();
  CHECK(same_bits(found[0], found[1]));
  return found[0];
}

}  // namespace

TEST_CASE("shards on GPUs have the bits of DataParallel there, with any strategy") {
  auto whole = trained([](communicator& all) {
    auto model = model_on(all.device());
    DataParallel replicated(*model, all);
    auto optimizer = replicated.make_optimizer(optim::AdamW({.lr = 1e-2}));
    for (int step = 0; step < num_steps; ++step) {
      replicated.backward(loss_of(replicated, step));
      optimizer->apply(static_cast<std::uint64_t>(step));
    }
    optimizer->synchronize();
    return on_cpu(model->state_dict());
  });
  REQUIRE(whole.size() == 6);
  for (auto strategy : {shard_strategy::optimizer, shard_strategy::grad, shard_strategy::full}) {
    CAPTURE(to_string(strategy));
    CHECK(same_bits(whole, trained([&](communicator& all) {
                      auto model = model_on(all.device());
                      FullyShardedDataParallel sharded(*model, all,
                                                       {.strategy = strategy, .unit_size_mb = 0.001});
                      auto optimizer = sharded.make_optimizer(optim::AdamW({.lr = 1e-2}));
                      for (int step = 0; step < num_steps; ++step) {
                        sharded.backward(loss_of(sharded, step));
                        optimizer->apply(static_cast<std::uint64_t>(step));
                      }
                      return sharded.state_dict();
                    })));
  }
}

TEST_CASE("a described model is made on GPUs, and goes on from copies there") {
  auto step_of = [](FullyShardedDataParallel& sharded, optim::optimizer_state& optimizer) {
    auto where = sharded.group().device();
    auto batch = batch_of(sharded.step(), sharded.group().rank());
    auto logits = sharded.forward({batch.samples.to(where)});
    sharded.backward(cross_entropy(logits, batch.labels.to(where), 1.0 / 3).loss);
    optimizer.apply(sharded.step() - 1);
  };
  auto train = [&](communicator& all, bool is_described, bool is_interrupted) {
    sharded_copies copies;
    for (int life = 0;; ++life) {
      auto model = images().make();
      if (!is_described) {
        model->materialize(7);
        model->to(all.device());
      }
      fully_sharded_options options{.unit_size_mb = small_units};
      if (is_described) options.seed = 7;
      FullyShardedDataParallel sharded(*model, all, options);
      auto optimizer = sharded.make_optimizer(optim::AdamW({.lr = 1e-2}));
      auto begun = copies.restore(sharded, *optimizer);
      if (begun.has_value() != (life > 0))
        throw std::runtime_error("expected copies in the second life only");
      while (sharded.step() < 4 && (!is_interrupted || life > 0 || sharded.step() < 2)) {
        step_of(sharded, *optimizer);
        copies.take(sharded, *optimizer);
      }
      if (sharded.step() == 4) {
        auto state = sharded.state_dict();
        std::erase_if(state, [](const auto& each) { return each.name.find("running") != std::string::npos; });
        return state;
      }
    }
  };
  auto whole = trained([&](communicator& all) { return train(all, false, false); });
  CHECK(same_bits(whole, trained([&](communicator& all) { return train(all, true, false); })));
  CHECK(same_bits(whole, trained([&](communicator& all) { return train(all, true, true); })));
}
