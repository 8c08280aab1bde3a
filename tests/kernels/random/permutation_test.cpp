#include "troupe/random/permutation.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <stdexcept>

using troupe::permutation;

TEST_CASE("a permutation holds every number once, for small and odd sizes") {
  for (std::int64_t n : {0, 1, 2, 3, 17, 1000}) {
    auto order = permutation(n, 7, 3);
    std::vector<std::int64_t> expected(static_cast<std::size_t>(n));
    std::iota(expected.begin(), expected.end(), std::int64_t{0});
    std::ranges::sort(order);
    CHECK(order == expected);
  }
}

TEST_CASE("a permutation is a function of its arguments alone") {
  CHECK(permutation(100, 7, 3) == permutation(100, 7, 3));
  CHECK(permutation(100, 7, 3) != permutation(100, 8, 3));
  CHECK(permutation(100, 7, 3) != permutation(100, 7, 4));
  CHECK(permutation(100, 7, 3) != permutation(100, 7, 3 + (std::uint64_t{1} << 32)));
}

TEST_CASE("each number comes equally often at each position") {
  constexpr int n = 5, draws = 20000;
  int count[n][n] = {};
  for (int stream = 0; stream < draws; ++stream) {
    auto order = permutation(n, 11, static_cast<std::uint64_t>(stream));
    for (std::size_t at = 0; at < n; ++at) ++count[at][order[at]];
  }
  // Expected 4000 with a standard deviation of 57: six deviations.
  for (auto& row : count)
    for (auto seen : row) CHECK(std::abs(seen - draws / n) < 340);
}

TEST_CASE("a permutation of a negative number of elements is refused") {
  CHECK_THROWS_AS(permutation(-1, 0, 0), std::invalid_argument);
}
