#include "troupe/scheduler/copy_interval.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

using namespace troupe;

TEST_CASE("every step is copied until something was observed") {
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

TEST_CASE(
    "copies that cost next to nothing are made at every step, dear ones no more rarely than each 64th") {
  copy_interval cheap, dear;
  cheap.observe(1, 1e-6);
  dear.observe(10, 9.9);
  CHECK(cheap.steps() == 1);
  CHECK(dear.steps() == 64);
}

TEST_CASE("steps without a copy leave what copies take as it was") {
  copy_interval interval;
  interval.observe(1.1, 0.1);
  for (int i = 0; i < 10; ++i) interval.observe(1, 0);
  CHECK(interval.steps() == 5);
}

TEST_CASE("the mean follows what is observed") {
  copy_interval interval;
  interval.observe(1.1, 0.1);
  for (int i = 0; i < 100; ++i) interval.observe(10.1, 0.1);
  CHECK(interval.steps() == 1);
}

TEST_CASE("a copy that seems longer than its step says nothing about steps") {
  copy_interval interval;
  interval.observe(0.1, 0.2);
  CHECK(interval.step_time().count() == 0);
  CHECK(interval.steps() == 1);
}
