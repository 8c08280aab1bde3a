#include "troupe/cluster/recovery_clock.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

using namespace troupe;
using namespace troupe::cluster;
using namespace std::chrono_literals;
using Catch::Matchers::WithinAbs;

TEST_CASE("several losses within one recovery make one report, timed from the first") {
  recovery_clock clock;
  recovery_clock::time_point now;
  clock.begin({2, "killed by SIGKILL"}, now, now + 1ms);
  clock.fenced(5, now + 2ms);
  clock.acknowledged(now + 3ms);
  clock.viewed(now + 10ms);
  CHECK_FALSE(clock.reached(recovery_phase::restored, now + 20ms));
  clock.begin({1, "exit code 3"}, now + 30ms, now + 31ms);
  clock.fenced(6, now + 32ms);
  clock.acknowledged(now + 40ms);
  clock.viewed(now + 50ms);
  CHECK_FALSE(clock.reached(recovery_phase::rebuilt, now + 60ms));
  auto report = clock.reached(recovery_phase::replayed, now + 100ms);
  REQUIRE(report);
  CHECK(report->loss.rank == 2);
  CHECK(report->generation == 6);
  CHECK_THAT(report->detect_s, WithinAbs(0.001, 1e-9));
  CHECK_THAT(report->quiesce_s, WithinAbs(0.038, 1e-9));
  CHECK_THAT(report->respawn_s, WithinAbs(0.010, 1e-9));
  CHECK_THAT(report->restore_s, WithinAbs(0.0, 1e-9));  // not told in the last generation
  CHECK_THAT(report->rebuild_s, WithinAbs(0.010, 1e-9));
  CHECK_THAT(report->total_s, WithinAbs(0.100, 1e-9));
  CHECK_FALSE(clock.running());
}

TEST_CASE("milestones without a recovery are ignored") {
  recovery_clock clock;
  CHECK_FALSE(clock.reached(recovery_phase::rebuilt, {}));
  CHECK_FALSE(clock.reached(recovery_phase::replayed, {}));
}

TEST_CASE("a milestone reported twice keeps its first time") {
  recovery_clock clock;
  recovery_clock::time_point now;
  clock.begin({0, "x"}, now, now);
  clock.fenced(2, now);
  clock.viewed(now);
  clock.reached(recovery_phase::restored, now + 1ms);
  clock.reached(recovery_phase::restored, now + 5ms);
  CHECK_THAT(clock.reached(recovery_phase::replayed, now + 6ms)->restore_s, WithinAbs(0.001, 1e-9));
}
