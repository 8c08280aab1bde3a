#include "troupe/random/fill.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <stdexcept>

#include "support/bits.hpp"

using troupe::tensor;

namespace {

tensor numbers(std::int64_t count, const char* name, float mean = 0, float deviation = 1) {
  auto result = tensor::empty({count});
  troupe::fill_normal(result, mean, deviation, 7, name);
  return result;
}

double normal_distribution(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

}  // namespace

TEST_CASE("normal numbers follow the normal distribution, tails included") {
  constexpr std::int64_t count = 400'000;
  auto drawn = numbers(count, "w");
  auto sorted = drawn.values<float>();
  std::ranges::sort(sorted);
  double largest_gap = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i)
    largest_gap = std::max(largest_gap,
                           std::abs(normal_distribution(sorted[i]) - (static_cast<double>(i) + 0.5) / count));
  // Kolmogorov's test at 1 in 10^5: sqrt(ln(2e5) / 2 / n).
  CHECK(largest_gap < std::sqrt(std::log(2e5) / 2 / count));
  CHECK(sorted.front() < -4);
  CHECK(sorted.back() > 4);
  CHECK(std::isfinite(sorted.front()));
  CHECK(std::isfinite(sorted.back()));
}

TEST_CASE("normal numbers depend on seed, name and index alone, and scale") {
  CHECK(troupe::testing::same_bits(numbers(1001, "w"), numbers(2001, "w").rows(0, 1001)));
  CHECK_FALSE(troupe::testing::same_bits(numbers(1001, "w"), numbers(1001, "v")));
  auto unit = numbers(100, "w"), scaled = numbers(100, "w", 3, 0.5F);
  for (std::size_t i = 0; i < 100; ++i)
    CHECK(std::abs(scaled.values<float>()[i] - (3 + 0.5F * unit.values<float>()[i])) < 1e-6F);
  CHECK_THROWS_AS(numbers(3, "w", 0, -1), std::invalid_argument);
  CHECK_THROWS_AS(numbers(3, "w", 0, NAN), std::invalid_argument);
}
