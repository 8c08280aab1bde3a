#include "troupe/tensor/shape.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <stdexcept>

TEST_CASE("a shape counts its elements and prints itself") {
  CHECK(troupe::shape{2, 3, 5}.num_elements() == 30);
  CHECK(troupe::shape{}.num_elements() == 1);
  CHECK(troupe::shape{4, 0}.num_elements() == 0);
  CHECK(troupe::to_string(troupe::shape{32, 784}) == "[32, 784]");
  CHECK(troupe::shape{2, 3}[-1] == 3);
}

TEST_CASE("impossible shapes are refused") {
  CHECK_THROWS_AS((troupe::shape{-1}), std::invalid_argument);
  CHECK_THROWS_AS((troupe::shape{std::numeric_limits<std::int64_t>::max(), 2}), std::invalid_argument);
  CHECK_THROWS_AS((troupe::shape{2}[1]), std::invalid_argument);
  CHECK_THROWS_WITH((troupe::shape{4, -1}), Catch::Matchers::ContainsSubstring("got [4, -1]"));
}

TEST_CASE("a shape whose size in bytes overflows is refused") {
  constexpr auto most = std::int64_t{1} << 58;
  CHECK(troupe::shape{most}.num_elements() == most);
  CHECK(troupe::shape{most / 2, 2}.num_elements() == most);
  CHECK_THROWS_AS((troupe::shape{most + 1}), std::invalid_argument);
  CHECK_THROWS_AS((troupe::shape{most, 2}), std::invalid_argument);
  CHECK_THROWS_WITH(
      (troupe::shape{std::int64_t{1} << 62, 4}),
      Catch::Matchers::ContainsSubstring("at most 2^58 elements, got [4611686018427387904, 4]"));
}
