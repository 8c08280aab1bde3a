#include "troupe/data_parallel/hooks/top_k_gradients.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "api/data_parallel/hooks/hooked_bucket.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Reduces these gradients of one parameter, in one step each, with one member.
struct steps {
  explicit steps(const top_k_gradients_options& options, std::int64_t size) : hook(options) {
    members = collective::make_local_group(1);
    bucket = bucket_of(*members[0], {{"w", {size}}});
    hook.prepare({bucket});
  }
  std::vector<float> operator()(const std::vector<float>& gradient) {
    set(bucket.sum, gradient);
    reduce(hook, bucket, *members[0]);
    return numbers(part_of(bucket.sum, bucket.parts[0]));
  }
  std::vector<float> kept(const std::string& what) {
    return numbers(find(hook.state(), "replica.0/top_k." + what + "/w"));
  }

  std::vector<std::unique_ptr<communicator>> members;
  top_k_gradients hook;
  gradient_bucket bucket;
};

using floats = std::vector<float>;

}  // namespace

TEST_CASE("the largest gradients are sent, and the others as soon as their sums are the largest") {
  steps step({.ratio = 0.25, .min_compressed_elements = 0}, 4);
  CHECK(step({1, -5, 2, 3}) == floats{0, -5, 0, 0});
  CHECK(step.kept("residual") == floats{1, 0, 2, 3});
  CHECK(step({1, 1, 2, 0}) == floats{0, 0, 4, 0});
  CHECK(step.kept("residual") == floats{2, 1, 0, 3});
  // Of equal ones the first.
  CHECK(step({-5, -1, 0, 0}) == floats{-3, 0, 0, 0});
  CHECK(step({0, 0, 0, 0}) == floats{0, 0, 0, 3});
}

TEST_CASE("the share of elements is rounded up, and every parameter sends one at least") {
  steps a_third({.ratio = 0.3, .min_compressed_elements = 0}, 4);
  CHECK(a_third({1, 2, 3, 4}) == floats{0, 0, 3, 4});
  steps little({.ratio = 1e-6, .min_compressed_elements = 0}, 4);
  CHECK(little({1, 2, 3, 4}) == floats{0, 0, 0, 4});
  steps all({.ratio = 1, .min_compressed_elements = 0}, 4);
  CHECK(all({1, 2, 3, 4}) == floats{1, 2, 3, 4});
}

TEST_CASE("velocities accumulate until they are sent, then restart from zero") {
  steps step({.ratio = 0.5, .min_compressed_elements = 0, .momentum = 0.5}, 2);
  CHECK(step({4, 2}) == floats{4, 0});  // u = 4 2, v = 4 2
  CHECK(step.kept("velocity") == floats{0, 2});
  CHECK(step({1, 2}) == floats{0, 5});  // u = 1 3, v = 1 5
  CHECK(step.kept("velocity") == floats{1, 0});
  CHECK(step.kept("residual") == floats{1, 0});
  CHECK(step({0, 1}) == floats{1.5, 0});  // u = 0.5 1, v = 1.5 1
}

TEST_CASE("dense steps send everything, as momentum alone would") {
  steps step({.ratio = 0.5, .min_compressed_elements = 0, .momentum = 0.5, .dense_steps = 2}, 2);
  CHECK(step({4, 2}) == floats{4, 2});
  CHECK(step({1, 2}) == floats{3, 3});
  CHECK(step.kept("residual") == floats{0, 0});
  CHECK(step({1, 0}) == floats{2.5, 0});
}

TEST_CASE("small parameters are sent whole, as momentum alone would") {
  steps step({.ratio = 0.5, .min_compressed_elements = 3, .momentum = 0.5}, 2);
  CHECK(step({4, 2}) == floats{4, 2});
  CHECK(step({1, 2}) == floats{3, 3});
  steps larger({.ratio = 0.5, .min_compressed_elements = 2}, 2);
  CHECK(larger({4, 2}) == floats{4, 0});
}

TEST_CASE("the sum of sent and remaining gradients is the sum of all gradients") {
  for (int members : {1, 2, 4}) {
    floats sent(48), left(48), given(48);
    std::mutex adding;
    on_members(members, [&](communicator& group) {
      auto bucket = bucket_of(group, {{"a", {30}}, {"b", {3, 4}}}, 4);
      top_k_gradients hook({.ratio = 0.1, .min_compressed_elements = 0});
      hook.prepare({bucket});
      for (int step = 0; step < 7; ++step) {
        for (std::size_t leaf = 0; leaf < bucket.leaves.size(); ++leaf)
          for (const auto& part : bucket.parts) {
            auto values = part_of(bucket.leaves[leaf], part);
            auto replica = bucket.own_replicas[leaf];
            for (std::int64_t i = 0; i < values.num_elements(); ++i) {
              // Whole numbers, whose sums are exact.
              auto number = static_cast<float>((i * 37 + step * 11 + replica * 5) % 41 - 20);
              values.values<float>()[static_cast<std::size_t>(i)] = number;
              std::lock_guard lock(adding);
              given[static_cast<std::size_t>(part.first + i)] += number;
            }
          }
        reduce(hook, bucket, group);
        std::lock_guard lock(adding);
        if (group.rank() == 0)
          for (std::size_t i = 0; i < sent.size(); ++i) sent[i] += bucket.sum.values<float>()[i];
      }
      std::lock_guard lock(adding);
      for (const auto& each : hook.state())
        for (const auto& part : bucket.parts)
          if (each.name.ends_with("residual/" + part.parameter))
            for (std::int64_t i = 0; i < part.extents.num_elements(); ++i)
              left[static_cast<std::size_t>(part.first + i)] +=
                  each.value.values<float>()[static_cast<std::size_t>(i)];
    });
    CHECK(std::ranges::any_of(left, [](float x) { return x != 0; }));
    for (std::size_t i = 0; i < sent.size(); ++i) CHECK(sent[i] + left[i] == given[i]);
  }
}

TEST_CASE("a non-finite gradient gives a non-finite result and does not change the state") {
  auto infinity = std::numeric_limits<float>::infinity();
  for (int dense_steps : {0, 9}) {
    steps step({.ratio = 0.25, .min_compressed_elements = 0, .momentum = 0.5, .dense_steps = dense_steps}, 4);
    step({1, 2, 3, 4});
    auto residual = step.kept("residual"), velocity = step.kept("velocity");
    auto sum = step({0, infinity, 0, 0});
    CHECK(std::ranges::any_of(sum, [](float x) { return !std::isfinite(x); }));
    CHECK(step.kept("residual") == residual);
    CHECK(step.kept("velocity") == velocity);
  }
}

TEST_CASE("an infinite gradient leaves the state of all parameters in its bucket unchanged") {
  auto members = collective::make_local_group(1);
  auto bucket = bucket_of(*members[0], {{"v", {4}}, {"w", {4}}, {"nothing", {0}}});
  top_k_gradients hook({.ratio = 0.25, .min_compressed_elements = 0, .momentum = 0.5});
  hook.prepare({bucket});
  auto step = [&](const floats& v, const floats& w) {
    set(part_of(bucket.sum, bucket.parts[0]), v);
    set(part_of(bucket.sum, bucket.parts[1]), w);
    reduce(hook, bucket, *members[0]);
  };
  step({1, 2, 3, 4}, {5, 6, 7, 8});
  std::vector<tensor> before;
  for (const auto& each : hook.state())
    if (each.name != "top_k.steps") before.push_back(each.value.clone());
  step({0, std::numeric_limits<float>::infinity(), 0, 0}, {1, 1, 1, 1});
  auto after = hook.state();
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(same_bits(after[i + 1].value, before[i]));
  CHECK(before.size() == 6);
}

TEST_CASE("top-k options out of their ranges are refused by name") {
  CHECK_THROWS_AS(top_k_gradients({.ratio = 0}), std::invalid_argument);
  CHECK_THROWS_AS(top_k_gradients({.ratio = 1.5}), std::invalid_argument);
  CHECK_THROWS_AS(top_k_gradients({.ratio = std::nan("")}), std::invalid_argument);
  CHECK_THROWS_AS(top_k_gradients({.momentum = 1}), std::invalid_argument);
  CHECK_THROWS_AS(top_k_gradients({.momentum = -0.1}), std::invalid_argument);
  CHECK_THROWS_AS(top_k_gradients({.min_compressed_elements = -1}), std::invalid_argument);
  CHECK_THROWS_AS(top_k_gradients({.dense_steps = -1}), std::invalid_argument);
}
