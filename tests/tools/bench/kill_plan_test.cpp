#include "bench/recovery/killed_run.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe::bench;

namespace {

kill_plan_options some_options(std::uint64_t seed) {
  return {
      .num_kills = 50, .ranks = {0, 1, 3}, .least_steps_between = 4, .most_steps_between = 9, .seed = seed};
}

}  // namespace

TEST_CASE("planned kills take the ranks in turn, at steps as far apart as asked, at moments within a step") {
  auto planned = plan_kills(some_options(1));
  REQUIRE(planned.size() == 50);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    CAPTURE(i);
    CHECK(planned[i].rank == std::vector{0, 1, 3}[i % 3]);
    CHECK(planned[i].step - before >= 4);
    CHECK(planned[i].step - before <= 9);
    CHECK(planned[i].into_next_step >= 0);
    CHECK(planned[i].into_next_step < 1);
    before = planned[i].step;
  }
}

TEST_CASE("the seed decides the plan") {
  auto steps = [](std::uint64_t seed) {
    std::vector<std::uint64_t> made;
    for (const auto& kill : plan_kills(some_options(seed))) made.push_back(kill.step);
    return made;
  };
  CHECK(steps(1) == steps(1));
  CHECK(steps(1) != steps(2));
}
