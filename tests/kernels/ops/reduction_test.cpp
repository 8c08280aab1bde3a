#include "troupe/ops/reduction.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "support/conversions.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::shape;
using troupe::tensor;
using troupe::testing::exact_sum;
using troupe::testing::floating_types;
using troupe::testing::random_tensor;
using troupe::testing::values_of;

namespace {

const shape extents{3, 4, 70, 5};
constexpr int rank = 4;

const std::vector<std::vector<int>> choices{{}, {0}, {-1}, {1, 2}, {0, 3}, {2}, {0, 2}, {3, 1, 0, 2}};

bool is_reduced(const std::vector<int>& axes, int axis) {
  auto holds = [&](int each) { return each == axis || each + rank == axis; };
  return axes.empty() || std::ranges::any_of(axes, holds);
}

/// The elements of x that meet in each element of the result.
std::vector<std::vector<double>> meeting(const tensor& x, const std::vector<int>& axes) {
  std::int64_t num_results = 1;
  for (int axis = 0; axis < rank; ++axis)
    if (!is_reduced(axes, axis)) num_results *= extents[axis];
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(num_results));
  auto values = values_of(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t rest = i, at = 0, step = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      auto extent = static_cast<std::size_t>(extents[axis]);
      if (!is_reduced(axes, axis)) at += rest % extent * step, step *= extent;
      rest /= extent;
    }
    groups[at].push_back(values[i]);
  }
  return groups;
}

std::vector<exact_sum> sums(const tensor& x, const std::vector<int>& axes, bool is_mean) {
  std::vector<exact_sum> results;
  for (const auto& group : meeting(x, axes)) {
    exact_sum sum;
    for (auto value : group) sum.add(value / (is_mean ? static_cast<double>(group.size()) : 1));
    results.push_back(sum);
  }
  return results;
}

}  // namespace

TEST_CASE("sum and mean over any axes are those of f64") {
  for (auto type : floating_types)
    for (const auto& axes : choices) {
      auto x = random_tensor(extents, "x", type);
      auto got = sum(x, {.axes = axes});
      CHECK(got.type() == type);
      require_close(got, sums(x, axes, false));
      require_close(mean(x, {.axes = axes}), sums(x, axes, true));
    }
}

TEST_CASE("max and min over any axes find the element") {
  for (const auto& axes : choices) {
    auto x = random_tensor(extents, "x");
    std::vector<double> largest, smallest;
    for (const auto& group : meeting(x, axes)) {
      largest.push_back(std::ranges::max(group));
      smallest.push_back(std::ranges::min(group));
    }
    CHECK(values_of(max(x, {.axes = axes})) == largest);
    CHECK(values_of(min(x, {.axes = axes})) == smallest);
  }
}

TEST_CASE("reduced axes go, or stay with one element") {
  auto x = tensor::zeros(extents);
  CHECK(sum(x, {.axes = {1, 3}}).extents() == shape{3, 70});
  CHECK(sum(x, {.axes = {1, 3}, .keep_axes = true}).extents() == shape{3, 1, 70, 1});
  CHECK(sum(x).extents() == shape{});
  CHECK(mean(tensor::full({}, 3)).extents() == shape{});
}

TEST_CASE("argmax names the first of the largest, and NaN before numbers") {
  auto x = tensor::from(std::vector<float>{1, 5, 5, 7, 2, 7}, {2, 3});
  auto indices = [](const tensor& of) {
    return std::vector<std::int64_t>(of.values<std::int64_t>().begin(), of.values<std::int64_t>().end());
  };
  CHECK(indices(argmax(x, -1)) == std::vector<std::int64_t>{1, 0});
  CHECK(indices(argmax(x, 0)) == std::vector<std::int64_t>{1, 0, 1});
  x.values<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  CHECK(indices(argmax(x, 1)) == std::vector<std::int64_t>{2, 0});
}

TEST_CASE("what is not a number stays visible") {
  auto x = random_tensor({7, 33}, "x");
  x.values<float>()[40] = std::numeric_limits<float>::quiet_NaN();
  for (const auto& axes : {std::vector{0}, std::vector{1}})
    for (auto* of : {troupe::max, troupe::min, troupe::sum}) {
      auto got = values_of(of(x, {.axes = axes}));
      CHECK(std::ranges::count_if(got, [](double value) { return std::isnan(value); }) == 1);
    }
}

TEST_CASE("nothing has the sum 0 and no largest element") {
  auto none = tensor::zeros({2, 0});
  CHECK(values_of(sum(none, {.axes = {1}})) == std::vector<double>{0, 0});
  CHECK(values_of(max(none, {.axes = {1}}))[0] == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(values_of(mean(none))[0]));
  CHECK(total_sum(none) == 0);
}

TEST_CASE("the total sum and the norm of many elements are those of f64") {
  auto x = random_tensor({300'007}, "x"), y = random_tensor({5, 3}, "y", dtype::bf16);
  exact_sum total, squares;
  for (auto value : values_of(x)) total.add(value), squares.add(value * value);
  for (auto value : values_of(y)) squares.add(value * value);
  CHECK(std::abs(total_sum(x) - total.value) < 1e-8 * total.absolute);
  CHECK(std::abs(values_of(sum(x))[0] - total.value) < 1e-6 * total.absolute);
  std::vector both{x, y};
  CHECK(std::abs(troupe::global_norm(both) / std::sqrt(squares.value) - 1) < 1e-7);
}

TEST_CASE("gradients of too large a norm are scaled to it, others are left") {
  std::vector gradients{tensor::full({3}, 2), tensor::full({1}, 2)};
  CHECK(troupe::clip_by_global_norm(gradients, 8) == 4);
  CHECK(values_of(gradients[1])[0] == 2);
  CHECK(troupe::clip_by_global_norm(gradients, 1) == 4);
  CHECK(values_of(gradients[0])[2] == static_cast<float>(1 / (4 + 1e-6)) * 2);
  gradients[1].values<float>()[0] = std::numeric_limits<float>::infinity();
  CHECK(std::isinf(troupe::clip_by_global_norm(gradients, 1)));
  CHECK(values_of(gradients[0])[0] < 1);
  CHECK(troupe::clipping_factor(0.5, 1) == 1);
  CHECK_THROWS_WITH(troupe::clip_by_global_norm(gradients, 0),
                    ContainsSubstring("[clip_by_global_norm] expected max_norm > 0"));
}

TEST_CASE("infinity and NaN are found") {
  auto x = random_tensor({5000}, "x", dtype::bf16);
  CHECK(all_finite(x));
  x.values<troupe::bfloat16>()[4321] = troupe::bfloat16(std::numeric_limits<float>::infinity());
  CHECK_FALSE(all_finite(x));
  CHECK(all_finite(tensor::full({3}, 3e38F)));
  CHECK_FALSE(all_finite(tensor::full({3}, std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("reductions give the same bits on any number of threads") {
  auto x = random_tensor({71, 5003}, "x");
  troupe::testing::require_same_bits_on_threads([&] {
    auto total = std::bit_cast<std::int64_t>(total_sum(x));
    return std::vector{sum(x),
                       sum(x, {.axes = {0}}),
                       sum(x, {.axes = {1}}),
                       max(x, {.axes = {0}}),
                       argmax(x, 0),
                       tensor::from(std::vector{total}, {1})};
  });
}

TEST_CASE("reductions refuse other dtypes and axes") {
  auto x = tensor::zeros({2, 3});
  CHECK_THROWS_WITH(sum(tensor::zeros({2}, dtype::i64)),
                    ContainsSubstring("[sum] expected x of f32, bf16 or f16"));
  CHECK_THROWS_WITH(max(x, {.axes = {2}}),
                    ContainsSubstring("[max] expected an axis of x, got 2 for f32[2, 3]"));
  CHECK_THROWS_WITH(mean(x, {.axes = {1, -1}}),
                    ContainsSubstring("[mean] expected each axis once, got axis -1 twice"));
  CHECK_THROWS_WITH(argmax(tensor::zeros({2, 0}), 1),
                    ContainsSubstring("[argmax] expected an axis with elements"));
  CHECK_THROWS_WITH(troupe::total_sum({}), ContainsSubstring("[total_sum]"));
}

TEST_CASE("argmax finds the element in rows longer than a block, and in columns") {
  auto x = random_tensor({2, 5003}, "x");
  x.values<float>()[4999] = x.values<float>()[17] = 2;
  x.values<float>()[5003 + 4000] = 3;
  auto across = argmax(x, 1), down = argmax(x, 0);
  CHECK(across.values<std::int64_t>()[0] == 17);
  CHECK(across.values<std::int64_t>()[1] == 4000);
  CHECK(down.values<std::int64_t>()[17] == 0);
  CHECK(down.values<std::int64_t>()[4000] == 1);
  auto lowest = tensor::full({1, 3}, -std::numeric_limits<float>::infinity());
  CHECK(argmax(lowest, 1).values<std::int64_t>()[0] == 0);
}
