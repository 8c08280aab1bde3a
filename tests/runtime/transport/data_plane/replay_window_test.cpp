#include "troupe/transport/data_plane/replay_window.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>
#include <vector>

using troupe::transport::replay_window;

TEST_CASE("a replay window admits each number once, in any order within its size") {
  std::vector<std::uint64_t> numbers(5000);
  std::iota(numbers.begin(), numbers.end(), 1);
  std::mt19937 random(7);
  for (auto from = numbers.begin(); from < numbers.end(); from += 500) std::shuffle(from, from + 500, random);
  replay_window window;
  for (auto number : numbers) {
    CHECK(window.admit(number));
    CHECK_FALSE(window.admit(number));
  }
  for (auto number : numbers) CHECK_FALSE(window.admit(number));
}

TEST_CASE("a replay window refuses what is older than it reaches") {
  replay_window window;
  CHECK(window.admit(0));
  CHECK(window.admit(10 * replay_window::size));
  CHECK_FALSE(window.admit(0));
  CHECK_FALSE(window.admit(9 * replay_window::size));
  CHECK(window.admit(9 * replay_window::size + 1));
  CHECK_FALSE(window.admit(9 * replay_window::size + 1));
  CHECK(window.admit(10 * replay_window::size + 1));
}
