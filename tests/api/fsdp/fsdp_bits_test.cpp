// Weights and losses of sharded training against those of one process with a DataParallel.
#include <catch2/catch_test_macros.hpp>
#include <tuple>

#include "api/fsdp/sharded_training.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/nn/init.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

void check_sharded(const trained_example& example, const training_recipe& recipe,
                   const std::vector<int>& members, const fully_sharded_options& options) {
  auto whole = train_whole(example, recipe);
  for (int num_members : members) {
    CAPTURE(num_members, recipe.num_replicas);
    auto sharded = train_sharded(example, recipe, num_members, options);
    CHECK(sharded.losses == whole.losses);
    CHECK(same_bits(sharded.weights, whole.weights));
  }
}

/// The parameters of a layer, for another module to compute with.
class layer_parameters : public nn::module_of<layer_parameters> {
 public:
  parameter weight{"weight", {36, 36}, nn::init::fan_in_uniform(36)};
  parameter bias{"bias", {36}, nn::init::fan_in_uniform(36)};

  variable forward(const variable& x) override { return linear(x, weight, &bias); }
  void each_parameter(const parameter_visitor& visit) override {
    visit(weight);
    visit(bias);
  }
};

/// Two layers, each of which adds the other's bias: operations that read two units.
class crossed : public nn::module_of<crossed> {
 public:
  variable forward(const variable& x) override {
    return linear(linear(x, left_.weight, &right_.bias), right_.weight, &left_.bias);
  }
  void each_child(const child_visitor& visit) override {
    visit("left", left_);
    visit("right", right_);
  }

 private:
  layer_parameters left_, right_;
};

}  // namespace

TEST_CASE("any strategy, number of members and of replicas has the bits of DataParallel") {
  for (auto strategy : {shard_strategy::optimizer, shard_strategy::grad, shard_strategy::full}) {
    CAPTURE(to_string(strategy));
    check_sharded(images(), {.num_replicas = 4}, {1, 2, 4},
                  {.strategy = strategy, .unit_size_mb = small_units});
    check_sharded(images(), {.num_replicas = 6}, {2, 3, 6},
                  {.strategy = strategy, .unit_size_mb = small_units});
  }
  CHECK_FALSE(
      same_training(train_whole(images(), {.num_replicas = 4}), train_whole(images(), {.num_replicas = 6})));
}

TEST_CASE("a weight that a step needs at both ends has the bits of DataParallel, whatever is gathered when") {
  for (int ahead : {0, 1, 5})
    for (bool reshards : {true, false}) {
      CAPTURE(ahead, reshards);
      check_sharded(tokens(), {.num_replicas = 3}, {3},
                    {.unit_size_mb = small_units, .reshard_after_forward = reshards, .gather_ahead = ahead});
    }
  check_sharded(tokens(true), {.num_replicas = 2}, {1, 2}, {.unit_size_mb = small_units});
}

TEST_CASE("clipping, accumulation, other optimizers and 16-bit products have the bits of DataParallel") {
  auto options = fully_sharded_options{.unit_size_mb = small_units};
  check_sharded(tokens(), {.num_replicas = 2, .clip = 0.3}, {1, 2}, options);
  check_sharded(images(), {.num_replicas = 4, .clip = 0.05, .num_passes = 3}, {2, 4}, options);
  check_sharded(images(), {.num_replicas = 3, .optimizer = optim::SGD({.lr = 0.1, .momentum = 0.9})}, {3},
                options);
  for (auto strategy : {shard_strategy::grad, shard_strategy::full}) {
    options.strategy = strategy;
    check_sharded(tokens(), {.num_replicas = 3, .optimizer = optim::LAMB({.lr = 1e-2})}, {3}, options);
  }
}

TEST_CASE("products in bf16 have the bits of DataParallel") {
  auto in_bf16 = [](trained_example example) {
    auto loss = example.loss;
    example.loss = [loss](std::uint64_t step, int replica, const auto& forward) {
      return loss(step, replica, [&](const variable& x) {
        autocast mixed(dtype::bf16);
        return cast(forward(x), dtype::f32);
      });
    };
    return example;
  };
  check_sharded(in_bf16(images()), {.num_replicas = 2}, {2}, {.unit_size_mb = small_units});
}

TEST_CASE("a described model has the weights of a materialized one, and is never whole") {
  auto whole = train_whole(tokens(), {.num_replicas = 2});
  auto described = train_sharded(tokens(), {.num_replicas = 2}, 2, {.unit_size_mb = small_units, .seed = 7});
  CHECK(same_training(described, whole));
}

TEST_CASE("units by name, one unit, and a unit for each layer have the same bits") {
  auto whole = train_whole(images(), {.num_replicas = 2});
  for (const auto& options : std::vector<fully_sharded_options>{{.units = {"4", "6"}},
                                                                {.units = {"0", "1", "4", "5", "6"}},
                                                                {.unit_size_mb = 100},
                                                                {.unit_size_mb = 1e-6}})
    CHECK(same_training(train_sharded(images(), {.num_replicas = 2}, 2, options), whole));
}

TEST_CASE("divisions side by side have the bits of one, if each has a power of two of replicas") {
  auto options = fully_sharded_options{.unit_size_mb = small_units};
  for (auto strategy : {shard_strategy::grad, shard_strategy::full}) {
    options.strategy = strategy;
    for (const auto& [replicas, members, copies] : {std::tuple{4, 4, 2}, {8, 4, 2}, {6, 6, 3}, {4, 2, 2}}) {
      CAPTURE(replicas, members, copies);
      training_recipe recipe{.num_replicas = replicas, .clip = 0.3};
      CHECK(same_training(train_sharded(tokens(), recipe, members, options, copies),
                          train_whole(tokens(), recipe)));
    }
  }
  // Other sums of three and three than of six: the same in all divisions, as state_dict of the last one
  // tells.
  training_recipe six{.num_replicas = 6};
  auto divided = train_sharded(images(), six, 6, options, 2);
  CHECK_FALSE(same_training(divided, train_whole(images(), six)));
  CHECK(same_training(divided, train_sharded(images(), six, 2, options, 2)));
}

TEST_CASE("the buffers and weights of the first member are those of all divisions") {
  for (auto strategy : {shard_strategy::grad, shard_strategy::full}) {
    std::vector<std::vector<named_tensor>> weights(4), used(4);
    std::vector<std::vector<int>> own(4);
    on_grid(4, 2, [&](const auto& shards, const auto& copies) {
      auto member = static_cast<std::size_t>(shards->rank() + 2 * copies->rank());
      auto model = images().make();
      model->materialize(7 + member);
      model->named_buffers()[0].target->value = tensor::full({4}, static_cast<float>(member));
      FullyShardedDataParallel sharded(*model, shards, copies,
                                       {.strategy = strategy, .unit_size_mb = small_units});
      own[member] = sharded.own_replicas();
      weights[member] = sharded.state_dict();
      used[member] = copy_of(model->state_dict());  // what operations read
    });
    CHECK(own == std::vector<std::vector<int>>{{0}, {1}, {2}, {3}});
    auto expected = materialized(images());
    expected->named_buffers()[0].target->value = tensor::full({4}, 0.0F);
    for (std::size_t member = 0; member < 4; ++member) {
      CHECK(same_bits(weights[member], copy_of(expected->state_dict())));
      CHECK(same_bits(used[member], weights[member]));
    }
  }
}

TEST_CASE("an operation that reads parameters of two units has both") {
  auto example = images();
  example.make = [] {
    return std::make_shared<nn::Sequential>(nn::Flatten(), crossed(), crossed(), nn::Linear(36, 5));
  };
  auto whole = train_whole(example, {.num_replicas = 2});
  for (int ahead : {0, 2})
    CHECK(same_training(
        train_sharded(example, {.num_replicas = 2}, 2,
                      {.units = {"1.left", "1.right", "2.left", "2.right", "3"}, .gather_ahead = ahead}),
        whole));
}

TEST_CASE("the weights of member 0 are those of all, and its buffers") {
  std::vector<std::vector<named_tensor>> weights(2);
  on_members(2, [&](communicator& group) {
    auto model = images().make();
    model->materialize(group.rank() == 0 ? 7 : 8);
    model->named_buffers()[0].target->value = tensor::full({4}, group.rank() == 0 ? 1.0F : 2.0F);
    FullyShardedDataParallel sharded(*model, group);
    weights[static_cast<std::size_t>(group.rank())] = sharded.state_dict();
  });
  auto expected = images().make();
  expected->materialize(7);
  expected->named_buffers()[0].target->value = tensor::full({4}, 1.0F);
  for (const auto& each : weights) CHECK(same_bits(each, copy_of(expected->state_dict())));
}
