#include "troupe/scheduler/state/step_tracker.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

using namespace troupe;
using namespace troupe::actors::scheduler;

TEST_CASE("the median of few values is exact") {
  sampled_median few;
  CHECK(few.median() == 0);
  for (double value : {5.0, 1.0, 4.0}) few.add(value);
  CHECK(few.median() == 4);
}

TEST_CASE("memory is bounded, and the median of many values is approximate") {
  sampled_median many;
  std::mt19937 random(3);
  for (int i = 0; i < 1'000'000; ++i) many.add(static_cast<double>(random() % 1'000'000));
  CHECK(many.num_kept() <= sampled_median::max_kept);
  CHECK(many.num_kept() >= sampled_median::max_kept / 2);
  // Five standard deviations of its rank.
  CHECK(std::abs(many.median() - 500'000) < 5 * 0.016 * 1'000'000);
}

TEST_CASE("the kept samples are spread evenly over all values") {
  sampled_median growing;
  for (int i = 0; i < 100'000; ++i) growing.add(i);
  CHECK(std::abs(growing.median() - 50'000) < 100);
}
