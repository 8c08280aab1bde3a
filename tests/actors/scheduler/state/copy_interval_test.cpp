#include "troupe/scheduler/state/copy_interval.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

using namespace troupe;
using namespace troupe::actors::scheduler;

TEST_CASE("every step is copied until a copy was timed") {
  copy_interval interval;
  CHECK(interval.steps() == 1);
  CHECK(interval.step_time().count() == 0);
  interval.observe(0.5, 0);
  CHECK(interval.steps() == 1);
}

TEST_CASE("copying takes at most two hundredths of the time") {
  copy_interval interval;
  interval.observe(1.1, 0.1);  // a second of work, a tenth of copying
  CHECK(interval.steps() == 5);
  CHECK_THAT(interval.step_time().count(), Catch::Matchers::WithinRel(1.0, 1e-9));
}

TEST_CASE("cheap copies are made at every step, expensive ones at least at each 64th") {
  copy_interval cheap, dear;
  cheap.observe(1, 1e-6);
  dear.observe(10, 9.9);
  CHECK(cheap.steps() == 1);
  CHECK(dear.steps() == 64);
}

TEST_CASE("steps without a copy do not change the estimate of a copy's time") {
  copy_interval interval;
  interval.observe(1.1, 0.1);
  for (int i = 0; i < 10; ++i) interval.observe(1, 0);
  CHECK(interval.steps() == 5);
}

TEST_CASE("the mean follows the observed times") {
  copy_interval interval;
  interval.observe(1.1, 0.1);
  for (int i = 0; i < 100; ++i) interval.observe(10.1, 0.1);
  CHECK(interval.steps() == 1);
}

TEST_CASE("a copy reported as longer than its step gives no estimate of the step time") {
  copy_interval interval;
  interval.observe(0.1, 0.2);
  CHECK(interval.step_time().count() == 0);
  CHECK(interval.steps() == 1);
}
