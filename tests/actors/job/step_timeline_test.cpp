#include "troupe/job/step_timeline.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

using enum troupe::action_kind;

TEST_CASE("a measured step becomes a timeline that begins at 0, each device's actions in order") {
  std::vector<troupe::actors::job::measured_action> actions{
      {0, 0, 0, forward, 1'000'000, 3'000'000},
      {1, 1, 0, forward, 3'000'000, 4'000'000},
      {0, 0, 1, forward, 4'000'000, 5'500'000},
  };
  auto ran = troupe::actors::job::timeline_of(actions, 3, 1e-6);
  REQUIRE(ran.devices.size() == 3);
  REQUIRE(ran.devices[0].size() == 2);
  REQUIRE(ran.devices[1].size() == 1);
  CHECK(ran.devices[2].empty());
  CHECK(ran.devices[0][0].begin == 0);
  CHECK(ran.devices[0][1].op == troupe::action{0, forward, 1});
  CHECK(ran.devices[0][1].begin == 3);
  CHECK(ran.devices[0][1].end == 4.5);
  CHECK(ran.devices[1][0].op == troupe::action{1, forward, 0});
  CHECK(ran.makespan == 4.5);
}

TEST_CASE("a measured action of a device that the job does not have is refused") {
  CHECK_THROWS_AS(troupe::actors::job::timeline_of({{2, 0, 0, forward, 0, 1}}, 2, 1e-9),
                  std::invalid_argument);
}
