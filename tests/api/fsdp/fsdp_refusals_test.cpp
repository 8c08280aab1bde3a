// What sharded training refuses, on every member, and what it says.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "api/fsdp/sharded_training.hpp"
#include "troupe/data_parallel/sync_batch_norm.hpp"
#include "troupe/optim/lamb.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;

namespace {

/// What a member is told when it wraps a model.
std::vector<std::string> wrapping(const std::function<std::shared_ptr<nn::Module>(int member)>& make,
                                  const std::function<fully_sharded_options(int member)>& options,
                                  int num_members = 2) {
  std::vector<std::string> told(static_cast<std::size_t>(num_members));
  on_members(num_members, [&](communicator& group) {
    auto model = make(group.rank());
    told[static_cast<std::size_t>(group.rank())] =
        error_of([&] { FullyShardedDataParallel(*model, group, options(group.rank())); });
  });
  return told;
}

std::string wrapping_with(const fully_sharded_options& options) {
  return wrapping([](int) { return materialized(images()); }, [&](int) { return options; })[1];
}

/// What members are told in one step.
std::vector<std::string> stepping_told(
    const trained_example& example, const fully_sharded_options& options,
    const std::function<void(FullyShardedDataParallel&, nn::Module&)>& act) {
  std::vector<std::string> told(2);
  on_members(2, [&](communicator& group) {
    auto model = materialized(example);
    FullyShardedDataParallel sharded(*model, group, options);
    told[static_cast<std::size_t>(group.rank())] = error_of([&] { act(sharded, *model); });
  });
  return told;
}

variable loss_of(FullyShardedDataParallel& sharded) {
  auto forward = [&](const variable& x) { return sharded.forward(x); };
  return images().loss(0, 0, forward);
}

/// A layer that uses its second part in training only if it is told to.
class sometimes : public nn::module_of<sometimes> {
 public:
  explicit sometimes(bool uses_both) : uses_both_(uses_both) {}
  variable forward(const variable& x) override {
    auto y = a_.forward(x);
    return uses_both_ ? b_.forward(y) : y;
  }
  void each_child(const child_visitor& visit) override {
    visit("a", a_);
    visit("b", b_);
  }

 private:
  nn::Linear a_{36, 36}, b_{36, 36};
  bool uses_both_;
};

trained_example with_unused() {
  auto example = images();
  example.make = [] {
    return std::make_shared<nn::Sequential>(nn::Flatten(), sometimes(false), nn::Linear(36, 5));
  };
  return example;
}

}  // namespace

TEST_CASE("options out of their range are refused, with what was expected") {
  CHECK_THAT(wrapping_with({.strategy = shard_strategy::none}),
             Equals("[FullyShardedDataParallel] expected strategy optimizer, grad or full (none: use "
                    "DataParallel), got none"));
  CHECK_THAT(wrapping_with({.unit_size_mb = 0}), ContainsSubstring("expected unit_size_mb > 0, got 0"));
  CHECK_THAT(wrapping_with({.gather_ahead = -1}), ContainsSubstring("expected gather_ahead >= 0, got -1"));
  CHECK_THAT(wrapping_with({.num_replicas = 3}),
             ContainsSubstring("expected num_replicas that 2 members divide evenly"));
  CHECK_THAT(wrapping_with({.units = {"4", "four"}}),
             ContainsSubstring("expected units that name modules with parameters, such as 0, got 'four'"));
  CHECK_THAT(wrapping_with({.units = {"4", "4"}}),
             ContainsSubstring("expected units of different names, got '4' twice"));
  CHECK_THAT(wrapping_with({.seed = 1}), ContainsSubstring("leave out the seed, or wrap before materialize"));
}

TEST_CASE("models and options that differ between members are refused on all of them") {
  auto made = [](int member) { return member == 0 ? materialized(images()) : materialized(tokens()); };
  for (const auto& each : wrapping(made, [](int) { return fully_sharded_options{}; }))
    CHECK_THAT(each,
               ContainsSubstring("[FullyShardedDataParallel] expected the same model and options on all "
                                 "ranks: rank 0 has 0.weight"));
  auto same = [](int) { return materialized(images()); };
  for (const auto& each :
       wrapping(same, [](int member) { return fully_sharded_options{.gather_ahead = member}; }))
    CHECK_THAT(each, ContainsSubstring("gather_ahead 1"));
  auto described = [](int) { return images().make(); };
  for (const auto& each : wrapping(described, [](int) { return fully_sharded_options{}; }))
    CHECK_THAT(each, ContainsSubstring("expected a materialized model, or options.seed, got 0.weight"));
}

TEST_CASE("batch norms over replicas need what they are over") {
  auto with_statistics = [](int) {
    auto model = materialized(images());
    convert_sync_batch_norm(*model);
    return model;
  };
  CHECK_THAT(wrapping(with_statistics, [](int) { return fully_sharded_options{}; })[0],
             ContainsSubstring("expected a SyncBatchNorm over a group"));
}

TEST_CASE("a parameter without a gradient is an error on every member, unless it is allowed") {
  auto act = [](FullyShardedDataParallel& sharded, nn::Module&) { sharded.backward(loss_of(sharded)); };
  // By its own passes, or since the other member has aborted the group.
  for (const auto& each : stepping_told(with_unused(), {.unit_size_mb = 0.001}, act))
    CHECK_THAT(each, ContainsSubstring("gradient") && ContainsSubstring("for 1.b.weight, 1.b.bias"));
  auto whole = with_unused();
  std::vector<named_tensor> weights;
  on_members(2, [&](communicator& group) {
    auto model = materialized(whole);
    FullyShardedDataParallel sharded(*model, group, {.unit_size_mb = 0.001, .find_unused_parameters = true});
    auto optimizer = sharded.make_optimizer(optim::AdamW({.lr = 0.1, .weight_decay = 0.5}));
    std::vector<float> losses;
    for (std::uint64_t step = 0; step < 2; ++step) {
      run_sharded_passes(sharded, whole, {.num_replicas = 2}, step, losses);
      optimizer->apply(step);
    }
    auto found = sharded.state_dict();
    if (group.rank() == 0) weights = std::move(found);
  });
  auto initial = materialized(whole)->state_dict();
  for (std::size_t i = 0; i < initial.size(); ++i)
    CHECK(same_bits(weights[i].value, initial[i].value) == initial[i].name.starts_with("1.b."));
}

TEST_CASE("frozen parameters are divided and stay as they are; one that is unfrozen later is an error") {
  auto frozen = images();
  auto make = frozen.make;
  frozen.make = [make] {
    auto model = make();
    for (const auto& each : model->named_parameters())
      each.target->requires_gradient = each.name.starts_with("4.") || each.name == "5.bias";
    return model;
  };
  auto whole = train_whole(frozen, {.num_replicas = 2});
  CHECK(same_training(train_sharded(frozen, {.num_replicas = 2}, 2, {.unit_size_mb = small_units}), whole));
  auto act = [](FullyShardedDataParallel& sharded, nn::Module& model) {
    model.requires_gradient(true);
    sharded.backward(loss_of(sharded));
  };
  for (const auto& each : stepping_told(frozen, {.unit_size_mb = small_units}, act))
    CHECK_THAT(each, ContainsSubstring("when its model was wrapped"));
}

TEST_CASE("members that use parts of the model in another order are told at the step") {
  // Equal layers: their calls cannot be told apart.
  class turned : public nn::module_of<turned> {
   public:
    explicit turned(int first) : first_(first) {}
    variable forward(const variable& x) override {
      auto y = x;
      for (int i = 0; i < 3; ++i)
        y = layers_[static_cast<std::size_t>(i < 2 ? (i + first_) % 2 : i)].forward(y);
      return y;
    }
    void each_child(const child_visitor& visit) override {
      for (std::size_t i = 0; i < layers_.size(); ++i) visit(std::to_string(i), layers_[i]);
    }

   private:
    int first_;
    std::vector<nn::Linear> layers_ = std::vector<nn::Linear>(3, nn::Linear(256, 256, {.bias = false}));
  };
  std::vector<std::string> told(2);
  on_members(2, [&](communicator& group) {
    nn::Sequential model(nn::Flatten(), nn::Linear(36, 256), turned(group.rank()), nn::Linear(256, 5));
    model.materialize(1);
    FullyShardedDataParallel sharded(model, group, {.unit_size_mb = 0.001, .gather_ahead = 0});
    auto optimizer = sharded.make_optimizer(optim::Adam());
    told[static_cast<std::size_t>(group.rank())] = error_of([&] {
      for (std::uint64_t step = 0; step < 2; ++step) {
        sharded.backward(loss_of(sharded));
        optimizer->apply(step);
      }
    });
  });
  for (const auto& each : told)
    CHECK_THAT(each, ContainsSubstring("rank 1 has used other parts of the model than rank 0"));
}

TEST_CASE("a parameter that is frozen between backward and step is not stepped") {
  std::vector<named_tensor> weights;
  auto initial = materialized(images())->state_dict();
  on_members(2, [&](communicator& group) {
    auto model = materialized(images());
    FullyShardedDataParallel sharded(*model, group, {.unit_size_mb = small_units});
    auto optimizer = sharded.make_optimizer(optim::AdamW({.lr = 0.1}));
    sharded.backward(loss_of(sharded));
    for (const auto& each : model->named_parameters())
      if (each.name == "4.weight") each.target->requires_gradient = false;
    optimizer->apply(0);
    auto found = sharded.state_dict();
    if (group.rank() == 0) weights = std::move(found);
  });
  for (std::size_t i = 0; i < initial.size(); ++i)
    if (initial[i].name.find("running") == std::string::npos)
      CHECK(same_bits(weights[i].value, initial[i].value) == (initial[i].name == "4.weight"));
}

TEST_CASE("other optimizers, other gradients and passes after the end are errors, not silence") {
  auto foreign = [](FullyShardedDataParallel& sharded, nn::Module& model) {
    auto optimizer = optim::Adam()(model.named_parameters());
    sharded.backward(loss_of(sharded));
    optimizer->apply(0);
  };
  for (auto strategy : {shard_strategy::grad, shard_strategy::full})
    for (const auto& each :
         stepping_told(images(), {.strategy = strategy, .unit_size_mb = small_units}, foreign))
      CHECK_THAT(each, ContainsSubstring("expected gradient f32[4, 1, 3, 3], got undefined"));
  auto two_backwards = [](FullyShardedDataParallel& sharded, nn::Module&) {
    auto optimizer = sharded.make_optimizer(optim::Adam());
    sharded.backward(loss_of(sharded));
    loss_of(sharded).backward();
  };
  for (const auto& each : stepping_told(images(), {.unit_size_mb = small_units}, two_backwards))
    CHECK_THAT(each, ContainsSubstring("got another backward pass to the same parameters"));
  auto early = [](FullyShardedDataParallel& sharded, nn::Module&) {
    sharded.backward(loss_of(sharded));
    auto late = sharded.make_optimizer(optim::LAMB());
  };
  for (const auto& each : stepping_told(images(), {.unit_size_mb = small_units}, early))
    CHECK_THAT(each, ContainsSubstring("expected a call between steps"));
  auto outdated = [](FullyShardedDataParallel& sharded, nn::Module&) {
    auto first = sharded.make_optimizer(optim::Adam());
    auto second = sharded.make_optimizer(optim::LAMB());
    sharded.backward(loss_of(sharded));
    first->apply(0);
  };
  for (const auto& each : stepping_told(images(), {.unit_size_mb = small_units}, outdated))
    CHECK_THAT(each, ContainsSubstring("expected the optimizer that was made last"));
  auto own_backward = [](FullyShardedDataParallel& sharded, nn::Module&) {
    auto optimizer = sharded.make_optimizer(optim::Adam());
    loss_of(sharded).backward();
    optimizer->apply(0);
  };
  for (const auto& each : stepping_told(images(), {.unit_size_mb = small_units}, own_backward))
    CHECK_THAT(each, ContainsSubstring("use FullyShardedDataParallel::backward instead of the loss's"));
  auto not_scalar = [](FullyShardedDataParallel& sharded, nn::Module&) {
    sharded.backward({tensor::zeros({2})});
  };
  for (const auto& each : stepping_told(images(), {}, not_scalar))
    CHECK_THAT(each, ContainsSubstring("[FullyShardedDataParallel::backward] expected a scalar"));
  std::string after;
  on_members(2, [&](communicator& group) {
    auto model = materialized(images());
    { FullyShardedDataParallel sharded(*model, group, {.unit_size_mb = small_units}); }
    auto told = error_of([&] { model->forward({batch_of(0, 0).samples}); });
    if (group.rank() == 0) after = told;
  });
  CHECK_THAT(after, ContainsSubstring("got a model whose values went with it"));
}
