#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Device 1 finds a gradient that is NaN in `step`; device 0 has done it.
void find_non_finite(one_scheduler& here, std::uint64_t step) {
  here.done(0, step);
  actors::messages::step_done found;
  found.generation = 1;
  found.step = step;
  found.device = 1;
  found.non_finite = "stage 1: the gradient of 3.weight";
  here.actors.send(here.scheduler, found);
}

}  // namespace

TEST_CASE("the newest committed copies are written to disk before a value that is not finite ends the job") {
  one_scheduler here({.window = 4, .on_disk = true, .disk_interval = 1000s});
  here.begin_training(100);
  here.all_done(0);
  here.all_held(1);
  auto credits = here.num_credits();
  find_non_finite(here, 1);
  for (const auto& supervisor : here.supervisors)
    CHECK(supervisor.last<actors::messages::write_copies>().step == 1);
  CHECK(here.members.failures.empty());
  here.all_written(1);
  REQUIRE(here.members.failures.size() == 1);
  CHECK_THAT(here.members.failures[0],
             ContainsSubstring("step 2, stage 1: the gradient of 3.weight is infinite or NaN") &&
                 ContainsSubstring("is of step 1"));
  REQUIRE_FALSE(here.disk->committed.empty());
  CHECK(here.disk->committed.back().step == 1);
  CHECK(here.num_credits() == credits);
}

TEST_CASE("copies that are still on their way are waited for, and the newest of them is written") {
  one_scheduler here({.window = 4, .on_disk = true, .disk_interval = 1000s});
  here.begin_training(100);
  here.all_done(0);
  here.all_done(1);
  find_non_finite(here, 2);  // before any copy is known
  for (const auto& supervisor : here.supervisors)
    CHECK(supervisor.all<actors::messages::write_copies>().empty());
  here.all_held(1);
  for (const auto& supervisor : here.supervisors)
    CHECK(supervisor.all<actors::messages::write_copies>().empty());
  here.all_held(2);
  for (const auto& supervisor : here.supervisors)
    CHECK(supervisor.last<actors::messages::write_copies>().step == 2);
  CHECK(here.members.failures.empty());
  here.all_written(2);
  REQUIRE(here.members.failures.size() == 1);
  CHECK_THAT(here.members.failures[0], ContainsSubstring("is of step 2"));
  here.actors.advance(121s);
  CHECK(here.members.failures.size() == 1);
}

TEST_CASE("copies that never come end the job with the original cause") {
  one_scheduler here({.window = 4, .on_disk = true, .disk_interval = 1000s});
  here.begin_training(100);
  here.all_done(0);
  find_non_finite(here, 1);
  CHECK(here.members.failures.empty());
  here.actors.advance(121s);
  REQUIRE(here.members.failures.size() == 1);
  CHECK_THAT(here.members.failures[0], ContainsSubstring("3.weight") && ContainsSubstring("no snapshot"));
}

TEST_CASE("a job whose last finite state cannot be written still ends with the original cause") {
  one_scheduler full({.window = 4, .on_disk = true, .disk_interval = 1000s}),
      silent({.window = 4, .on_disk = true, .disk_interval = 1000s});
  for (auto* here : {&full, &silent}) {
    here->begin_training(100);
    here->all_done(0);
    here->all_held(1);
    find_non_finite(*here, 1);
  }
  full.written(1, 0, "the disk is full");
  silent.actors.advance(121s);
  for (auto* here : {&full, &silent}) {
    REQUIRE(here->members.failures.size() == 1);
    CHECK_THAT(here->members.failures[0], ContainsSubstring("3.weight") && ContainsSubstring("no snapshot"));
  }
}

TEST_CASE(
    "without a snapshot folder a non-finite value ends the job at once, and the message says what is lost") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  here.all_done(0);
  find_non_finite(here, 1);
  REQUIRE(here.members.failures.size() == 1);
  CHECK_THAT(here.members.failures[0], ContainsSubstring("--snapshot-dir"));
}

TEST_CASE("a job that skips non-finite steps continues") {
  one_scheduler here({.window = 4, .on_non_finite = non_finite_policy::skip});
  here.begin_training(100);
  find_non_finite(here, 0);
  CHECK(here.members.failures.empty());
  here.all_done(1);
  CHECK(here.num_credits() == 2);
}
