#include "troupe/data_parallel/hooks/power_sgd.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "api/data_parallel/hooks/hooked_bucket.hpp"
#include "troupe/gradients/orthonormalize_columns.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/matmul.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using floats = std::vector<float>;

float largest_difference(const tensor& a, const tensor& b) {
  float largest = 0;
  auto x = a.values<float>(), y = b.values<float>();
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

}  // namespace

TEST_CASE("columns become orthonormal in their order, and those that others span zero") {
  auto matrix = tensor::from(floats{3, 6, 1, 4, 8, 1, 0, 0, 1}, {3, 3});
  gradients::orthonormalize_columns(matrix);
  auto values = matrix.values<float>();
  CHECK(values[0] == 0.6F);
  CHECK(values[3] == 0.8F);
  for (std::size_t row = 0; row < 3; ++row) CHECK(values[row * 3 + 1] == 0);
  auto products = matmul(matrix, matrix, {.transpose_a = true});
  CHECK(largest_difference(products, tensor::from(floats{1, 0, 0, 0, 0, 0, 0, 0, 1}, {3, 3})) < 1e-6F);
  auto random = random_tensor({50, 4}, "random");
  gradients::orthonormalize_columns(random);
  auto identity = tensor::from(floats{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, {4, 4});
  CHECK(largest_difference(matmul(random, random, {.transpose_a = true}), identity) < 1e-6F);
  auto zeros = tensor::zeros({5, 2});
  gradients::orthonormalize_columns(zeros);
  CHECK(same_bits(zeros, tensor::zeros({5, 2})));
}

TEST_CASE("matrices are factored if that saves enough, other parameters are all-reduced uncompressed") {
  auto members = collective::make_local_group(1);
  auto bucket = bucket_of(*members[0], {{"bias", {40}}, {"conv", {16, 2, 5, 5}}, {"small", {6, 8}}});
  power_sgd hook({.rank = 3});
  hook.prepare({bucket});
  std::vector<std::string> names;
  for (const auto& each : hook.state()) names.push_back(each.name + " " + describe(each.value));
  CHECK(names == std::vector<std::string>{"power_sgd.steps i64[1]",
                                          "replica.0/power_sgd.residual/conv f32[16, 2, 5, 5]",
                                          "power_sgd.q/conv f32[50, 3]"});
  bucket.sum.copy_from(random_tensor(bucket.sum.shape(), "gradient"));
  auto before = bucket.sum.clone();
  reduce(hook, bucket, *members[0]);
  for (std::size_t part : {0, 2})
    CHECK(same_bits(part_of(bucket.sum, bucket.parts[part]), part_of(before, bucket.parts[part])));
  CHECK_FALSE(same_bits(part_of(bucket.sum, bucket.parts[1]), part_of(before, bucket.parts[1])));
}

TEST_CASE("gradients of low rank are sent exactly, and residuals are zero") {
  on_members(2, [](communicator& group) {
    auto bucket = bucket_of(group, {{"w", {20, 30}}});
    power_sgd hook({.rank = 2});
    hook.prepare({bucket});
    auto gradient_of = [](int replica) {
      return multiply(matmul(random_tensor({20, 1}, "left"), random_tensor({1, 30}, "right")),
                      static_cast<float>(replica + 1));
    };
    part_of(bucket.sum, bucket.parts[0]).copy_from(gradient_of(group.rank()));
    reduce(hook, bucket, group);
    static std::mutex checking;
    std::lock_guard lock(checking);
    CHECK(largest_difference(part_of(bucket.sum, bucket.parts[0]), add(gradient_of(0), gradient_of(1))) <
          1e-5F);
    auto residual = find(hook.state(), "replica." + std::to_string(group.rank()) + "/power_sgd.residual/w");
    CHECK(largest_difference(residual, tensor::zeros({20, 30})) < 1e-5F);
  });
}

TEST_CASE("a step is the power iteration of the paper") {
  auto members = collective::make_local_group(1);
  auto bucket = bucket_of(*members[0], {{"w", {20, 30}}});
  power_sgd hook({.rank = 2});
  hook.prepare({bucket});
  auto residual = tensor::zeros({20, 30});
  auto q = find(hook.state(), "power_sgd.q/w").clone();
  for (int step = 0; step < 3; ++step) {
    auto gradient = random_tensor({20, 30}, std::to_string(step));
    part_of(bucket.sum, bucket.parts[0]).copy_from(gradient);
    reduce(hook, bucket, *members[0]);
    auto m = add(gradient, residual);
    auto p = matmul(m, q);
    gradients::orthonormalize_columns(p);
    q = matmul(m, p, {.transpose_a = true});
    auto expected = matmul(p, q, {.transpose_b = true});
    residual = subtract(m, expected);
    CHECK(largest_difference(part_of(bucket.sum, bucket.parts[0]), expected) < 1e-5F);
    CHECK(largest_difference(find(hook.state(), "power_sgd.q/w"), q) < 1e-5F);
    CHECK(largest_difference(find(hook.state(), "replica.0/power_sgd.residual/w"), residual) < 1e-5F);
  }
}

TEST_CASE("the sum of sent gradients and residuals is the sum of the gradients") {
  for (int members : {1, 2, 4}) {
    auto sent = tensor::zeros({20, 30}), left = tensor::zeros({20, 30}), given = tensor::zeros({20, 30});
    std::mutex adding;
    on_members(members, [&](communicator& group) {
      auto bucket = bucket_of(group, {{"w", {20, 30}}}, 4);
      power_sgd hook({.rank = 2, .dense_steps = 1});
      hook.prepare({bucket});
      for (int step = 0; step < 6; ++step) {
        for (std::size_t leaf = 0; leaf < bucket.leaves.size(); ++leaf) {
          auto replica = bucket.own_replicas[leaf];
          auto name = std::to_string(step) + "." + std::to_string(replica);
          auto gradient = random_tensor({20, 30}, name);
          part_of(bucket.leaves[leaf], bucket.parts[0]).copy_from(gradient);
          std::lock_guard lock(adding);
          axpy(1, gradient, given);
        }
        reduce(hook, bucket, group);
        std::lock_guard lock(adding);
        if (group.rank() == 0) axpy(1, part_of(bucket.sum, bucket.parts[0]), sent);
      }
      std::lock_guard lock(adding);
      for (const auto& each : hook.state())
        if (each.name.ends_with("residual/w")) axpy(1, each.value, left);
    });
    CHECK(largest_difference(left, tensor::zeros({20, 30})) > 1);
    CHECK(largest_difference(add(sent, left), given) < 1e-4F);
  }
}

TEST_CASE("after gradients of zero all directions of PowerSGD are restored") {
  auto members = collective::make_local_group(1);
  auto bucket = bucket_of(*members[0], {{"w", {20, 30}}});
  power_sgd hook({.rank = 2});
  hook.prepare({bucket});
  reduce(hook, bucket, *members[0]);
  CHECK(same_bits(find(hook.state(), "power_sgd.q/w"), tensor::zeros({30, 2})));
  auto gradient = matmul(random_tensor({20, 1}, "left"), random_tensor({1, 30}, "right"));
  part_of(bucket.sum, bucket.parts[0]).copy_from(gradient);
  reduce(hook, bucket, *members[0]);
  CHECK(largest_difference(part_of(bucket.sum, bucket.parts[0]), gradient) < 1e-5F);
}

TEST_CASE("a non-finite matrix gives a non-finite result, and factors and residuals do not change") {
  auto members = collective::make_local_group(1);
  auto bucket = bucket_of(*members[0], {{"w", {20, 30}}});
  power_sgd hook({.rank = 2});
  hook.prepare({bucket});
  bucket.sum.copy_from(random_tensor(bucket.sum.shape(), "gradient"));
  reduce(hook, bucket, *members[0]);
  auto q = find(hook.state(), "power_sgd.q/w").clone();
  auto residual = find(hook.state(), "replica.0/power_sgd.residual/w").clone();
  bucket.sum.values<float>()[33] = std::numeric_limits<float>::infinity();
  reduce(hook, bucket, *members[0]);
  CHECK(std::ranges::any_of(numbers(bucket.sum), [](float x) { return !std::isfinite(x); }));
  CHECK(same_bits(find(hook.state(), "power_sgd.q/w"), q));
  CHECK(same_bits(find(hook.state(), "replica.0/power_sgd.residual/w"), residual));
}

TEST_CASE("PowerSGD options out of their ranges are refused") {
  CHECK_THROWS_AS(power_sgd({.rank = 0}), std::invalid_argument);
  CHECK_THROWS_AS(power_sgd({.min_compression_rate = 0.5}), std::invalid_argument);
  CHECK_THROWS_AS(power_sgd({.dense_steps = -1}), std::invalid_argument);
}
