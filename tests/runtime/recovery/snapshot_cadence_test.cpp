#include "troupe/recovery/snapshot_cadence.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>
#include <vector>

using namespace troupe;
using namespace troupe::recovery;
using namespace std::chrono_literals;

TEST_CASE("steps on the cadence are due, step 0 is not") {
  snapshot_cadence cadence{4, 10, 60s};
  CHECK(snapshot_due(0, cadence, {}) == due_snapshots{false, false});
  CHECK(snapshot_due(3, cadence, {}) == due_snapshots{false, false});
  CHECK(snapshot_due(4, cadence, {}) == due_snapshots{true, false});
  CHECK(snapshot_due(10, cadence, {}) == due_snapshots{true, true});  // disk writes the copy in memory
  CHECK(snapshot_due(20, cadence, {}) == due_snapshots{true, true});
}

TEST_CASE("with a time interval only the announced step is written to disk") {
  snapshot_cadence cadence{0, 0, 60s};
  CHECK(snapshot_due(7, cadence, {}) == due_snapshots{false, false});
  CHECK(snapshot_due(7, cadence, 7) == due_snapshots{true, true});
  CHECK(snapshot_due(8, cadence, 7) == due_snapshots{false, false});
  CHECK(snapshot_due(7, {1, 10, 60s}, 7) ==
        due_snapshots{true, false});  // by steps: announcements mean nothing
}

TEST_CASE("no step is announced before the interval is over, and no step that a stage may have passed") {
  snapshot_cadence cadence{1, 0, 60s};
  disk_clock clock{100, 108, 116, 1s, 50s};
  CHECK(next_disk_step(clock, cadence) == 110U);
  clock.since_last_disk = 55s;
  CHECK(next_disk_step(clock, cadence) == 109U);  // 105 may be past
  clock.since_last_disk = 300s;
  CHECK(next_disk_step(clock, cadence) == 109U);
  clock.since_last_disk = 44s;
  CHECK(next_disk_step(clock, cadence) == 116U);
  clock.since_last_disk = 43s;
  CHECK_FALSE(next_disk_step(clock, cadence));
}

TEST_CASE("an unknown step time waits until the interval is over") {
  snapshot_cadence cadence{1, 0, 60s};
  CHECK_FALSE(next_disk_step({0, 4, 8, 0s, 59s}, cadence));
  CHECK(next_disk_step({0, 4, 8, 0s, 60s}, cadence) == 5U);
}

TEST_CASE("without a time interval or without a credit no step is announced") {
  disk_clock late{100, 108, 116, 1s, 1000s};
  CHECK_FALSE(next_disk_step(late, {1, 10, 60s}));
  CHECK_FALSE(next_disk_step(late, {1, 0, 0s}));
  late.next_credit = late.granted_until;
  CHECK_FALSE(next_disk_step(late, {1, 0, 60s}));
}

TEST_CASE("extreme times give a step of the next credit or none") {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> exponent(-300, 300);
  auto any = [&] { return std::chrono::duration<double>(std::pow(10, exponent(random))); };
  for (int round = 0; round < 20'000; ++round) {
    disk_clock clock{random() % 50, random() % 60, random() % 100, any(), any()};
    auto step = next_disk_step(clock, {1, 0, any()});
    if (step) REQUIRE((*step > clock.granted_until && *step <= clock.next_credit));
  }
}

TEST_CASE("a job of steady steps writes once an interval") {
  snapshot_cadence cadence{1, 0, 10s};
  std::vector<std::uint64_t> written;
  std::uint64_t granted = 0, last = 0, announced = 0;
  for (std::uint64_t done = 0; done < 1000; ++done) {  // steps of 0.1 s, credits of 8 steps when 4 are left
    if (announced != 0 && done == announced) {
      written.push_back(done);
      last = done;
      announced = 0;
    }
    if (granted - done > 4) continue;
    disk_clock clock{done, granted, granted + 8, 100ms, 100ms * static_cast<int>(done - last)};
    if (announced == 0) announced = next_disk_step(clock, cadence).value_or(0);
    granted += 8;
  }
  REQUIRE(written.size() == 9);
  for (std::size_t i = 0; i < written.size(); ++i) CHECK(written[i] == (i + 1) * 100);
}
