#include "troupe/ops/top_k.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/conversions.hpp"
#include "support/devices.hpp"
#include "support/threads.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::dtype;
using troupe::tensor;
using troupe::testing::elements_of;
using troupe::testing::floating_types;
using troupe::testing::placed;
using troupe::testing::random_tensor;
using troupe::testing::require_same_bits_on_threads;
using troupe::testing::same_bits;
using troupe::testing::values_of;

TEST_CASE("the k largest come in descending order, the lower index first among equals") {
  for (auto type : floating_types)
    for (std::int64_t size : {1, 7, 16, 17, 300})
      for (auto k : {std::int64_t{1}, (size + 1) / 2, size}) {
        auto x = placed(random_tensor({2, 3, size}, "x", type));
        auto all = values_of(x);
        for (auto& value : all) value = std::round(value * 10);  // many are equal
        x = placed(troupe::testing::rounded_to(all, x.shape(), type));
        auto [values, indices] = troupe::top_k(x, k);
        REQUIRE(values.dtype() == type);
        REQUIRE(indices.shape() == troupe::shape{2, 3, k});
        auto found = elements_of<std::int64_t>(indices);
        auto largest = values_of(values);
        for (std::int64_t row = 0; row < 6; ++row) {
          std::vector<std::int64_t> order(static_cast<std::size_t>(size));
          std::iota(order.begin(), order.end(), 0);
          auto at = [&](std::int64_t i) { return all[static_cast<std::size_t>(row * size + i)]; };
          std::ranges::stable_sort(order, [&](auto a, auto b) { return at(a) > at(b); });
          for (std::int64_t i = 0; i < k; ++i) {
            auto place = static_cast<std::size_t>(row * k + i);
            auto expected = order[static_cast<std::size_t>(i)];
            REQUIRE(found[place] == expected);
            REQUIRE(largest[place] == at(expected));
          }
        }
      }
}

TEST_CASE("NaN is larger than infinity, and zeros of both signs are equal") {
  constexpr auto nan = std::numeric_limits<float>::quiet_NaN(),
                 infinity = std::numeric_limits<float>::infinity();
  auto x = placed(tensor::from(std::vector<float>{-0.0F, infinity, 0, nan, -infinity, nan}, {6}));
  CHECK(
      same_bits(troupe::top_k(x, 6).indices, tensor::from(std::vector<std::int64_t>{3, 5, 1, 0, 2, 4}, {6})));
  auto below = std::vector<float>{-nan, -1e-45F, 0, 1e-45F, -infinity, -2, -1, infinity};
  CHECK(same_bits(troupe::top_k(placed(tensor::from(below, {8})), 8).indices,
                  tensor::from(std::vector<std::int64_t>{0, 7, 3, 2, 1, 6, 5, 4}, {8})));
}

TEST_CASE("the number of threads changes no bit of top_k") {
  require_same_bits_on_threads([] {
    auto [values, indices] = troupe::top_k(placed(random_tensor({50, 2000}, "x")), 5);
    return std::vector{values, indices};
  });
}

TEST_CASE("top_k with k = 0 is empty, and a k above the row's size is refused", "[host]") {
  CHECK(troupe::top_k(tensor::zeros({3, 4}), 0).indices.shape() == troupe::shape{3, 0});
  CHECK(troupe::top_k(tensor::empty({0, 4}), 2).values.shape() == troupe::shape{0, 2});
  CHECK_THROWS_WITH(troupe::top_k(tensor::zeros({3, 4}), 5), "[top_k] expected k in [0, 4], got 5");
  CHECK_THROWS_WITH(troupe::top_k(tensor::zeros({3, 4}), -1), ContainsSubstring("got -1"));
  CHECK_THROWS_WITH(troupe::top_k(tensor::zeros({}), 0), ContainsSubstring("x with at least one axis"));
  CHECK_THROWS_WITH(troupe::top_k(tensor::zeros({3}, dtype::i32), 1),
                    ContainsSubstring("x of f32, bf16 or f16"));
}
