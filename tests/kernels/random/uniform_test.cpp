#include "troupe/random/fill.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <stdexcept>

using troupe::fill_uniform;
using troupe::tensor;

namespace {

std::vector<float> filled(std::int64_t size, std::uint64_t seed, std::string_view name) {
  auto target = tensor::full({size}, 99);
  fill_uniform(target, -2, 3, seed, name);
  auto values = target.values<float>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("uniform numbers depend on seed, name and index, not on the size of the tensor") {
  auto longer = filled(103, 5, "0.weight"), shorter = filled(51, 5, "0.weight");
  CHECK(std::ranges::equal(shorter, std::vector(longer.begin(), longer.begin() + 51)));
  CHECK(filled(103, 6, "0.weight") != longer);
  CHECK(filled(103, 5, "0.bias") != longer);
}

TEST_CASE("uniform numbers fill the interval evenly") {
  constexpr int size = 100000;
  auto values = filled(size, 5, "weight");
  CHECK(*std::ranges::min_element(values) >= -2);
  CHECK(*std::ranges::min_element(values) < -1.999F);
  CHECK(*std::ranges::max_element(values) <= 3);
  CHECK(*std::ranges::max_element(values) > 2.999F);
  auto mean = std::accumulate(values.begin(), values.end(), 0.0) / size;
  // The mean of the interval is 0.5, and that of 100000 draws deviates by 0.0046: six deviations.
  CHECK(std::abs(mean - 0.5) < 0.028);
}

TEST_CASE("an empty interval or another dtype is refused") {
  CHECK_THROWS_AS(fill_uniform(tensor::zeros({3}), 1, 1, 0, "x"), std::invalid_argument);
  CHECK_THROWS_AS(fill_uniform(tensor::zeros({3}, troupe::dtype::i64), 0, 1, 0, "x"), std::invalid_argument);
}
