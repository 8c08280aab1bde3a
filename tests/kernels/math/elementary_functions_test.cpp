#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "troupe/math/elementary_functions.hpp"

TEST_CASE("the exponential is that of the C library within two units in the last place") {
  for (double x = -708; x < 709; x += 0.0917) {
    auto expected = std::exp(x);
    REQUIRE(std::abs(troupe::exponential(x) - expected) <= 2 * (std::nextafter(expected, 1e308) - expected));
  }
  CHECK(troupe::exponential(0) == 1);
  CHECK(troupe::exponential(-1e9) == 0);
  CHECK(std::isnan(troupe::exponential(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("the logarithm is that of the C library") {
  constexpr double epsilon = std::numeric_limits<double>::epsilon();
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    auto expected = std::log(x);
    REQUIRE(std::abs(troupe::logarithm(x) - expected) <= 4 * epsilon * std::fmax(1, std::abs(expected)));
  }
  for (double x = 0.5; x < 3; x += 0.00037)
    REQUIRE(std::abs(troupe::logarithm(x) - std::log(x)) <= 4 * epsilon);
  CHECK(troupe::logarithm(1) == 0);
}

TEST_CASE("the cosine is the C library's within 1e-15, and exact at the ends of its range") {
  for (int i = 0; i <= 10'000; ++i) {
    auto t = i / 10'000.0;
    REQUIRE(std::abs(troupe::cosine_of_pi_times(t) - std::cos(std::numbers::pi * t)) <= 1e-15);
  }
  CHECK(troupe::cosine_of_pi_times(0) == 1);
  CHECK(troupe::cosine_of_pi_times(1) == -1);
  CHECK(std::abs(troupe::cosine_of_pi_times(0.5)) < 1e-16);
}
