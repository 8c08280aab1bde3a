#include "troupe/data_parallel/sync_batch_norm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <mutex>
#include <stdexcept>

#include "api/data_parallel/replicated_model.hpp"
#include "support/bits.hpp"
#include "troupe/autograd/functions.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

struct passed {
  tensor y, dx, weight_gradient, bias_gradient;
  std::vector<named_tensor> state;
};

/// One training step's forward and backward over rows [first, first + count) of a batch of 7 images.
passed pass(nn::BatchNorm2d& module, std::int64_t first, std::int64_t count, dtype type = dtype::f32) {
  auto x = random_tensor({7, 3, 5, 2}, "x");
  for (auto& each : x.values<float>()) each = 2 * each + 10;
  auto input = leaf(cast(x.rows(first, count), type));
  auto y = module.forward(input);
  y.backward(cast(random_tensor({7, 3, 5, 2}, "dy").rows(first, count), type));
  return {y.value, input.gradient(), module.parameters()[0]->gradient(), module.parameters()[1]->gradient(),
          module.state_dict()};
}

void check_close(const tensor& a, const tensor& b, float tolerance) {
  auto x = cast(a, dtype::f32), y = cast(b, dtype::f32);
  REQUIRE(x.shape() == y.shape());
  for (std::size_t i = 0; i < x.values<float>().size(); ++i)
    CHECK(std::abs(x.values<float>()[i] - y.values<float>()[i]) <= tolerance);
}

tensor sum_of(const tensor& a, const tensor& b) {
  auto sum = a.clone();
  for (std::size_t i = 0; i < sum.values<float>().size(); ++i) sum.values<float>()[i] += b.values<float>()[i];
  return sum;
}

}  // namespace

TEST_CASE("batches of unequal sizes are normalised as one") {
  for (auto type : {dtype::f32, dtype::bf16}) {
    nn::BatchNorm2d alone(3);
    alone.materialize(1);
    auto expected = pass(alone, 0, 7, type);
    std::vector<passed> found(2);
    on_members(2, [&](communicator& group) {
      nn::SyncBatchNorm module(3, group);
      module.materialize(1);
      found[static_cast<std::size_t>(group.rank())] =
          group.rank() == 0 ? pass(module, 0, 2, type) : pass(module, 2, 5, type);
    });
    auto tolerance = type == dtype::f32 ? 2e-6F : 2e-2F;
    check_close(found[0].y, expected.y.rows(0, 2), tolerance);
    check_close(found[1].y, expected.y.rows(2, 5), tolerance);
    check_close(found[0].dx, expected.dx.rows(0, 2), tolerance);
    check_close(found[1].dx, expected.dx.rows(2, 5), tolerance);
    check_close(sum_of(found[0].weight_gradient, found[1].weight_gradient), expected.weight_gradient, 1e-4F);
    check_close(sum_of(found[0].bias_gradient, found[1].bias_gradient), expected.bias_gradient, 1e-4F);
    for (std::size_t i = 2; i < 4; ++i) {  // running statistics
      check_close(found[0].state[i].value, expected.state[i].value, 2e-6F);
      CHECK(same_bits(found[0].state[i].value, found[1].state[i].value));
    }
  }
}

TEST_CASE("one element of each channel on each member is enough") {
  on_members(2, [](communicator& group) {
    nn::SyncBatchNorm module(1, group);
    module.materialize(1);
    auto y = module.forward({tensor::full({1, 1, 1, 1}, static_cast<float>(group.rank()))});
    auto expected = group.rank() == 0 ? -1.0F : 1.0F;
    if (std::abs(y.value.values<float>()[0] - expected) > 1e-4F) throw std::runtime_error("not normalised");
  });
  on_members(1, [](communicator& group) {
    nn::SyncBatchNorm module(1, group);
    module.materialize(1);
    CHECK_THROWS_AS(module.forward({tensor::full({1, 1, 1, 1}, 0)}), std::invalid_argument);
  });
}

TEST_CASE("evaluation asks no other member, and its backward does not either") {
  on_members(2, [](communicator& group) {
    nn::SyncBatchNorm module(3, group);
    module.materialize(1);
    module.eval();
    if (group.rank() > 0) return;
    auto x = leaf(random_tensor({2, 3, 2, 2}, "x"));
    sum(module.forward(x)).backward();
    if (!x.gradient().defined() || !module.parameters()[0]->has_gradient)
      throw std::logic_error("expected gradients");
  });
}

TEST_CASE("a frozen weight or bias gets no gradient, and the other one its usual gradient") {
  on_members(1, [](communicator& group) {
    nn::SyncBatchNorm all(3, group);
    all.materialize(1);
    auto expected = pass(all, 0, 7);
    for (std::size_t frozen : {0, 1}) {
      nn::SyncBatchNorm some(3, group);
      some.materialize(1);
      auto parameters = some.parameters();
      parameters[frozen]->requires_gradient = false;
      auto found = pass(some, 0, 7);
      CHECK_FALSE(parameters[frozen]->has_gradient);
      CHECK(parameters[1 - frozen]->has_gradient);
      CHECK(same_bits(parameters[1 - frozen]->gradient(),
                      frozen == 0 ? expected.bias_gradient : expected.weight_gradient));
      CHECK(same_bits(found.dx, expected.dx));
    }
  });
}

TEST_CASE("a converted model trains to the same losses on two members as on the whole batch") {
  std::vector<float> losses[2];
  for (int num_members : {1, 2})
    on_members(num_members, [&](communicator& group) {
      nn::Sequential model(nn::Conv2d(1, 4, 3), nn::BatchNorm2d(4), nn::Flatten(), nn::Linear(64, 5));
      model.materialize(5);
      auto had = has_statistics_of(model, nn::BatchNorm2d::statistics_of::group);
      auto found = convert_sync_batch_norm(model, group);
      DataParallel replicated(model, group);
      auto optimizer = optim::Adam({.lr = 1e-2})(model.named_parameters());
      auto part = 4 / group.size(), first = part * group.rank();
      for (std::uint64_t step = 0; step < 5; ++step) {
        auto x = random_tensor({4, 1, 6, 6}, "x");
        auto labels = tensor::from(std::vector<std::int64_t>{0, 1, 2, 3}, {4});
        auto loss = nn::CrossEntropy()(replicated.forward({x.rows(first, part)}), labels.rows(first, part),
                                       1.0 / part)
                        .loss;
        replicated.backward(loss);
        optimizer->apply(step);
        auto mean = loss.value.reshape({1}).clone();
        group.all_reduce(mean, reduce_op::mean).wait();
        if (group.rank() == 0) losses[num_members - 1].push_back(mean.values<float>()[0]);
      }
      if (had || found != 1) throw std::logic_error("expected one batch norm");
    });
  REQUIRE(losses[0].size() == losses[1].size());
  for (std::size_t i = 0; i < 5; ++i) CHECK(std::abs(losses[0][i] - losses[1][i]) < 1e-4F);
  CHECK(losses[0].front() > losses[0].back());
}

TEST_CASE("several replicas on a member, which run one after the other, cannot share statistics") {
  on_members(1, [](communicator& group) {
    auto model = small_model();
    CHECK(convert_sync_batch_norm(model, group) == 1);
    CHECK_THROWS_AS(DataParallel(model, group, {.num_replicas = 2}), std::invalid_argument);
  });
}

TEST_CASE("over the replicas of a pipeline, run by hand, it is a BatchNorm2d; DataParallel refuses it") {
  nn::BatchNorm2d plain(3);
  nn::SyncBatchNorm synced(3);
  plain.materialize(1);
  synced.materialize(1);
  auto expected = pass(plain, 0, 7), found = pass(synced, 0, 7);
  check_close(found.y, expected.y, 2e-6F);
  check_close(found.dx, expected.dx, 2e-6F);
  on_members(2, [](communicator& group) {
    nn::Sequential model(nn::Conv2d(1, 4, 3), nn::SyncBatchNorm(4));
    model.materialize(5);
    auto is_refused = [&] {
      try {
        DataParallel(model, group);
      } catch (const std::invalid_argument&) {
        return true;
      }
      return false;
    };
    auto before = is_refused();
    auto num_converted = convert_sync_batch_norm(model, group);
    auto after = is_refused();
    static std::mutex checking;
    std::lock_guard lock(checking);
    CHECK(before);
    CHECK(num_converted == 1);
    CHECK_FALSE(after);
  });
}
