#include "troupe/math/cosine.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numbers>

TEST_CASE("the cosine is the C library's within 1e-15, and exact at the ends of its range") {
  for (int i = 0; i <= 10'000; ++i) {
    auto t = i / 10'000.0;
    REQUIRE(std::abs(troupe::cosine_of_pi_times(t) - std::cos(std::numbers::pi * t)) <= 1e-15);
  }
  CHECK(troupe::cosine_of_pi_times(0) == 1);
  CHECK(troupe::cosine_of_pi_times(1) == -1);
  CHECK(std::abs(troupe::cosine_of_pi_times(0.5)) < 1e-16);
}
