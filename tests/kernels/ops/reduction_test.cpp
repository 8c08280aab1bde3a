#include "troupe/ops/reduction.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::reduction_options;
using troupe::shape;
using troupe::squares_block_elements;
using troupe::tensor;
using troupe::testing::elements_of;
using troupe::testing::exact_sum;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::same_bits;
using troupe::testing::values_of;

namespace {

constexpr auto infinity = std::numeric_limits<float>::infinity();
constexpr auto not_a_number = std::numeric_limits<float>::quiet_NaN();

struct reduction_case {
  shape extents;
  std::vector<int> axes;
  shape dropped, kept;
};

/// Whole tensors, rows, columns, both sides of an axis, axes of one element, and several levels of the tree.
const std::vector<reduction_case> cases{{{}, {}, {}, {}},
                                        {{7}, {}, {}, {1}},
                                        {{10'007}, {0}, {}, {1}},
                                        {{3, 5}, {}, {}, {1, 1}},
                                        {{3, 5, 37}, {-1}, {3, 5}, {3, 5, 1}},
                                        {{5, 4100}, {1}, {5}, {5, 1}},
                                        {{1000, 3}, {0}, {3}, {1, 3}},
                                        {{150, 2100}, {0}, {2100}, {1, 2100}},
                                        {{5000, 5}, {0}, {5}, {1, 5}},
                                        {{3, 70, 5}, {1}, {3, 5}, {3, 1, 5}},
                                        {{4, 3, 5, 6}, {0, 2, 3}, {3}, {1, 3, 1, 1}},
                                        {{4, 3, 5, 6}, {3, 1}, {4, 5}, {4, 1, 5, 1}},
                                        {{3, 1, 5}, {1}, {3, 5}, {3, 1, 5}},
                                        {{3, 1, 5}, {0, 2}, {1}, {1, 1, 1}},
                                        {{0, 3}, {1}, {0}, {0, 1}}};

/// For each element of x in order, which element of the result it goes to.
std::vector<std::size_t> targets_of(const reduction_case& which) {
  auto rank = which.extents.rank();
  std::vector<std::size_t> result;
  for (std::int64_t i = 0; i < which.extents.num_elements(); ++i) {
    std::int64_t rest = i, target = 0, stride = 1;
    for (auto axis = rank; axis-- > 0;) {
      auto at = rest % which.extents[axis];
      rest /= which.extents[axis];
      if (which.kept[axis] == 1) continue;
      target += at * stride;
      stride *= which.kept[axis];
    }
    result.push_back(static_cast<std::size_t>(target));
  }
  return result;
}

/// The elements that each element of the result is made from.
std::vector<std::vector<double>> groups_of(const reduction_case& which, const tensor& x) {
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(which.dropped.num_elements()));
  auto values = values_of(x);
  auto targets = targets_of(which);
  for (std::size_t i = 0; i < values.size(); ++i) groups[targets[i]].push_back(values[i]);
  return groups;
}

void require_shapes(const reduction_case& which, const tensor& dropped, const tensor& kept, dtype type) {
  REQUIRE(dropped.shape() == which.dropped);
  REQUIRE(kept.shape() == which.kept);
  REQUIRE(dropped.dtype() == type);
  REQUIRE(same_bits(kept.reshape(which.dropped), dropped));
}

}  // namespace

TEST_CASE("sum and mean over any axes are those of f64") {
  for (const auto& which : cases)
    for (auto type : floating_types) {
      auto x = placed(random_tensor(which.extents, "x", type));
      std::vector<exact_sum> sums, means;
      for (const auto& group : groups_of(which, x)) {
        exact_sum exact;
        for (auto value : group) exact.add(value);
        auto count = static_cast<double>(group.size());
        sums.push_back(exact);
        means.push_back({exact.value / count, exact.absolute / count});
      }
      CAPTURE(to_string(which.extents), which.axes);
      auto total = sum(x, {which.axes}), average = mean(x, {which.axes});
      require_close(total, sums);
      require_close(average, means);
      require_shapes(which, total, sum(x, {which.axes, true}), type);
      require_shapes(which, average, mean(x, {which.axes, true}), type);
    }
}

TEST_CASE("max and min over any axes are exact") {
  for (const auto& which : cases)
    for (auto type : floating_types) {
      auto x = placed(random_tensor(which.extents, "x", type));
      auto largest = max(x, {which.axes}), smallest = min(x, {which.axes});
      auto got_largest = values_of(largest), got_smallest = values_of(smallest);
      auto groups = groups_of(which, x);
      CAPTURE(to_string(which.extents), which.axes);
      for (std::size_t i = 0; i < groups.size(); ++i) {
        REQUIRE(got_largest[i] == *std::ranges::max_element(groups[i]));
        REQUIRE(got_smallest[i] == *std::ranges::min_element(groups[i]));
      }
      require_shapes(which, largest, max(x, {which.axes, true}), type);
      require_shapes(which, smallest, min(x, {which.axes, true}), type);
    }
}

TEST_CASE("argmax is the first index of the largest element") {
  for (const auto& which : cases)
    for (auto type : floating_types) {
      if (which.axes.size() > 1) continue;
      // Rounded to few values, so that many are equal.
      auto values = values_of(random_tensor(which.extents, "x"));
      for (auto& value : values) value = std::round(value * 20);
      auto x = placed(troupe::testing::rounded_to(values, which.extents, type));
      auto index = argmax(x, {which.axes});
      auto groups = groups_of(which, x);
      auto places = elements_of<std::int64_t>(index);
      CAPTURE(to_string(which.extents), which.axes);
      for (std::size_t i = 0; i < groups.size(); ++i)
        REQUIRE(places[i] == std::ranges::max_element(groups[i]) - groups[i].begin());
      require_shapes(which, index, argmax(x, {which.axes, true}), dtype::i64);
    }
}

TEST_CASE("max and min of NaN give NaN, and argmax its index") {
  for (std::int64_t place : {0, 1, 40, 99, 4999}) {
    auto x = random_tensor({5000}, "x");
    x.values<float>()[static_cast<std::size_t>(place)] = not_a_number;
    x = placed(x);
    for (const auto& extents : {shape{5000}, shape{5000, 1}, shape{100, 50}, shape{1250, 4}}) {
      auto seen = x.reshape(extents);
      CHECK(std::isnan(values_of(max(seen))[0]));
      CHECK(std::isnan(values_of(min(seen))[0]));
      CHECK(elements_of<std::int64_t>(argmax(seen))[0] == place);
    }
    auto columns = x.reshape({100, 50});
    auto column = static_cast<std::size_t>(place % 50);
    CHECK(std::isnan(values_of(max(columns, {{0}}))[column]));
    CHECK(std::isnan(values_of(min(columns, {{0}}))[column]));
    CHECK(elements_of<std::int64_t>(argmax(columns, {{0}}))[column] == place / 50);
  }
}

TEST_CASE("rows of any length and alignment, of equal elements and with NaN, are reduced") {
  for (auto type : floating_types)
    for (std::int64_t size :
         {1, 2, 3, 4, 7, 8, 9, 31, 33, 64, 200, 255, 256, 257, 768, 1023, 1025, 2048, 2056, 4096, 4097, 8200})
      for (std::int64_t offset : {0, 1}) {
        auto length = static_cast<std::size_t>(size);
        auto values = values_of(random_tensor({3 * size}, "x"));
        for (auto& value : values) value = std::round(value * 3);
        std::fill_n(values.begin() + size, length, -infinity);
        values[2 * length + length / 2] = values[3 * length - 1] = not_a_number;
        auto x = placed(tensor::zeros({3 * size + offset}, type)).rows(offset, 3 * size);
        x.copy_from(troupe::testing::rounded_to(values, {3 * size}, type));
        x = x.reshape({3, size});
        auto first = std::max_element(values.begin(), values.begin() + size) - values.begin();
        CAPTURE(to_string(type), size, offset);
        REQUIRE(elements_of<std::int64_t>(argmax(x, {{1}})) ==
                std::vector<std::int64_t>{first, 0, static_cast<std::int64_t>(length / 2)});
        auto largest = values_of(max(x, {{1}})), smallest = values_of(min(x, {{1}}));
        REQUIRE(largest[0] == values[static_cast<std::size_t>(first)]);
        REQUIRE(smallest[0] == *std::min_element(values.begin(), values.begin() + size));
        REQUIRE(largest[1] == -infinity);
        REQUIRE(smallest[1] == -infinity);
        REQUIRE((std::isnan(largest[2]) && std::isnan(smallest[2])));
      }
}

TEST_CASE("argmax of columns of any length and alignment is the first index of the largest element or NaN") {
  for (auto type : floating_types)
    for (const auto& extents : {shape{1, 4}, shape{8, 3}, shape{63, 6}, shape{64, 2}, shape{71, 5},
                                shape{300, 4}, shape{9, 1 << 18}})
      for (std::int64_t offset : {0, 1}) {
        auto rows = static_cast<std::size_t>(extents[0]), columns = static_cast<std::size_t>(extents[1]);
        auto values = values_of(random_tensor(extents, "x"));
        for (auto& value : values) value = std::round(value * 3);
        for (std::size_t row = 0; row < rows; ++row) values[row * columns] = -infinity;
        values[rows / 2 * columns + 1] = values[rows * columns - columns + 1] = not_a_number;
        auto x = placed(tensor::zeros({extents.num_elements() + offset}, type));
        x = x.rows(offset, extents.num_elements()).reshape(extents);
        x.copy_from(troupe::testing::rounded_to(values, extents, type));
        std::vector<std::int64_t> first(columns, 0);
        for (std::size_t i = columns; i < values.size(); ++i) {
          auto& at = first[i % columns];
          auto largest = values[static_cast<std::size_t>(at) * columns + i % columns];
          if (!(values[i] <= largest) && !std::isnan(largest)) at = static_cast<std::int64_t>(i / columns);
        }
        CAPTURE(to_string(type), to_string(extents), offset);
        REQUIRE(elements_of<std::int64_t>(argmax(x, {{0}})) == first);
      }
}

TEST_CASE("infinities are reduced like other numbers") {
  auto x = placed(tensor::from(std::vector<float>{-infinity, -infinity, infinity, 1}, {2, 2}));
  CHECK(values_of(max(x, {{1}})) == std::vector<double>{-infinity, infinity});
  CHECK(values_of(sum(x, {{1}})) == std::vector<double>{-infinity, infinity});
  CHECK(elements_of<std::int64_t>(argmax(x, {{1}}))[1] == 0);
}

TEST_CASE("reductions give the same bits on any number of threads") {
  for (auto type : floating_types) {
    auto x = placed(random_tensor({300, 700}, "x", type)),
         y = placed(random_tensor({30, 70, 100}, "y", type));
    troupe::testing::require_same_bits_on_threads([&] {
      std::vector<tensor> results;
      for (const auto& axes : {std::vector<int>{}, {0}, {1}})
        results.insert(results.end(),
                       {sum(x, {axes}), mean(x, {axes}), max(x, {axes}), min(x, {axes}), argmax(x, {axes})});
      results.insert(results.end(), {sum(y, {{0, 2}}), argmax(y, {{1}})});
      results.push_back(tensor::from(std::vector<float>{static_cast<float>(total_sum(x))}, {1}));
      return results;
    });
  }
}

TEST_CASE("the sum of no elements is zero, and their mean is an error") {
  auto none = placed(tensor::zeros({0, 3}));
  CHECK(values_of(sum(none)) == std::vector<double>{0});
  CHECK(values_of(sum(none, {{0}})) == std::vector<double>{0, 0, 0});
  CHECK(sum(none, {{1}}).num_elements() == 0);
  CHECK_THROWS_WITH(mean(none),
                    ContainsSubstring("[mean] expected at least one element to reduce, got f32[0, 3]"));
  CHECK_THROWS_WITH(max(none, {{0}}), ContainsSubstring("[max] expected at least one element"));
  CHECK_THROWS_WITH(min(none), ContainsSubstring("[min] expected at least one element"));
  CHECK_THROWS_WITH(argmax(none), ContainsSubstring("[argmax] expected at least one element"));
}

TEST_CASE("total sum and global norm are those of f64") {
  for (auto type : floating_types) {
    std::vector<tensor> parts;
    double sum = 0, squares = 0;
    for (std::int64_t size : {1, 0, 40'001, 33, 16'384}) {
      parts.push_back(placed(random_tensor({size}, std::to_string(size), type)));
      double own = 0;
      for (auto value : values_of(parts.back())) own += value, squares += value * value;
      CHECK(std::abs(total_sum(parts.back()) - own) < 1e-9);
      sum += own;
    }
    CHECK(std::abs(global_norm(parts) - std::sqrt(squares)) < 1e-9);
  }
  CHECK(troupe::global_norm({}) == 0);
  CHECK(std::abs(troupe::global_norm(std::vector{placed(tensor::full({4}, 3e38F))}) / 6e38 - 1) < 1e-6);
}

TEST_CASE("squares of blocks are those of f64, and their sum that of the norm") {
  for (auto type : floating_types)
    for (std::int64_t size : {1, 0, 40'001, 16'383, 16'384, 16'385}) {
      CAPTURE(size, type);
      auto x = placed(random_tensor({size}, std::to_string(size), type));
      auto found = block_squares(std::span(&x, 1));
      REQUIRE(std::ssize(found) == (size + squares_block_elements - 1) / squares_block_elements);
      auto values = values_of(x);
      double total = 0;
      for (std::size_t block = 0; block < found.size(); ++block) {
        double expected = 0;
        auto first = block * static_cast<std::size_t>(squares_block_elements);
        for (auto i = first; i < std::min(values.size(), first + 16'384); ++i)
          expected += values[i] * values[i];
        CHECK(std::abs(found[block] - expected) < 1e-9);
        total += found[block];
      }
      if (x.device().type == troupe::device::kind::cpu)
        CHECK(std::sqrt(total) == global_norm(std::vector{x}));
    }
}

TEST_CASE("squares of blocks of several tensors are those of each, one after the other") {
  std::vector<tensor> all;
  std::vector<double> expected;
  for (std::int64_t size : {0, 20'000, 1, 0, 50'000}) {
    auto& x = all.emplace_back(placed(random_tensor({size}, std::to_string(size), dtype::f32)));
    std::ranges::copy(block_squares(std::span(&x, 1)), std::back_inserter(expected));
  }
  CHECK(block_squares(all) == expected);
  CHECK(expected.size() == 2 + 1 + 4);
  CHECK(troupe::block_squares({}).empty());
}

TEST_CASE("one non-finite element is found at any position") {
  CHECK(troupe::all_finite({}));
  for (auto type : floating_types)
    for (double bad : {double{infinity}, -double{infinity}, double{not_a_number}})
      for (std::size_t place : {0, 2047, 2048, 20'000}) {
        auto values = values_of(random_tensor({20'001}, "x", type));
        auto good = placed(troupe::testing::rounded_to(values, {20'001}, type));
        values[place] = bad;
        std::vector<tensor> parts{good, placed(troupe::testing::rounded_to(values, {20'001}, type))};
        REQUIRE_FALSE(all_finite(parts));
        REQUIRE_FALSE(scale_all(parts, 0.5));
        REQUIRE(all_finite(std::span(parts).first(1)));
      }
}

TEST_CASE("scaling multiplies every element and says whether all stay finite") {
  for (auto type : floating_types) {
    std::vector<tensor> parts{placed(random_tensor({5000}, "a", type)),
                              placed(random_tensor({3, 7}, "b", type))};
    for (auto& part : parts) {
      auto expected = values_of(part);
      for (auto& value : expected) value = static_cast<float>(value) * 0.3F;
      auto copy = part.clone();
      REQUIRE(scale_all(std::vector{part}, 0.3));
      REQUIRE(same_bits(part, troupe::testing::rounded_to(expected, part.shape(), type)));
      REQUIRE_FALSE(same_bits(part, copy));
    }
  }
  CHECK_FALSE(troupe::scale_all(std::vector{placed(tensor::full({3}, 1e30F))}, 1e30));
  CHECK_FALSE(troupe::scale_all(std::vector{placed(random_tensor({3}, "x", dtype::f16))}, 1e30));
}

TEST_CASE("gradients are clipped to a global norm only if their norm is larger") {
  std::vector<tensor> gradients{placed(tensor::full({9}, 2)), placed(tensor::full({16}, -2))};  // of norm 10
  CHECK(clip_by_global_norm(gradients, 20) == 10);
  CHECK(values_of(gradients[0])[0] == 2);
  CHECK(clip_by_global_norm(gradients, 5) == 10);
  CHECK(std::abs(values_of(gradients[0])[3] - 2 * 5 / (10 + 1e-6)) < 1e-6);
  CHECK(std::abs(global_norm(gradients) - 5) < 1e-5);
  CHECK(troupe::clipping_factor(10, 20) == 1);
  gradients[1].rows(0, 1).copy_from(tensor::full({1}, infinity));
  CHECK(std::isinf(clip_by_global_norm(gradients, 1)));
  CHECK(values_of(gradients[0])[0] > 0.9);
  CHECK_THROWS_WITH(clip_by_global_norm(gradients, 0),
                    ContainsSubstring("[clip_by_global_norm] expected max_norm > 0"));
}

TEST_CASE("reductions refuse other dtypes and axes", "[host]") {
  auto x = tensor::zeros({2, 3}), whole = tensor::zeros({3}, dtype::i32);
  CHECK_THROWS_WITH(sum(whole), ContainsSubstring("[sum] expected x of f32, bf16 or f16, got i32[3]"));
  CHECK_THROWS_WITH(mean(whole), ContainsSubstring("[mean] expected x of f32"));
  CHECK_THROWS_WITH(max(whole), ContainsSubstring("[max] expected x of f32"));
  CHECK_THROWS_WITH(argmax(whole), ContainsSubstring("[argmax] expected x of f32"));
  CHECK_THROWS_WITH(total_sum(whole), ContainsSubstring("[total_sum] expected x of f32"));
  CHECK_THROWS_WITH(troupe::global_norm(std::vector{x, whole}),
                    ContainsSubstring("[global_norm] expected elements of f32"));
  CHECK_THROWS_WITH(sum(x, {{2}}), ContainsSubstring("[sum] expected axes of x f32[2, 3], got axis 2"));
  CHECK_THROWS_WITH(sum(x, {{-3}}), ContainsSubstring("got axis -3"));
  CHECK_THROWS_WITH(min(x, {{1, -1}}), ContainsSubstring("[min] expected each axis once, got axis -1 twice"));
  CHECK_THROWS_WITH(argmax(x, {{0, 1}}), ContainsSubstring("[argmax] expected one axis or all, got 2 axes"));
}
