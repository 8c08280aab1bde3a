#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace {

void stop(one_scheduler& here) { here.actors.send(here.scheduler, actors::messages::stop_job{15}); }

}  // namespace

TEST_CASE("a stop during training finishes the granted steps and one more, and saves that step") {
  one_scheduler here({.window = 4, .on_disk = true, .disk_interval = 1000s});
  here.begin_training(100);
  here.all_done(0);
  here.all_held(1);
  stop(here);
  CHECK(here.granted().end_step == 5);
  CHECK(here.granted().copies.back().to_disk == 1);
  for (std::uint64_t step = 1; step < 5; ++step) here.all_done(step);
  here.all_held(5);
  CHECK(here.members.stops.empty());
  here.all_written(5);
  REQUIRE(here.members.stops.size() == 1);
  CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 5, which is saved in "));
  REQUIRE_FALSE(here.disk->committed.empty());
  CHECK(here.disk->committed.back().step == 5);
  CHECK(here.finished(1).empty());
}

TEST_CASE("a stopped job that cannot write its snapshot reports that") {
  one_scheduler here({.window = 4, .on_disk = true, .disk_interval = 1000s});
  here.begin_training(100);
  here.all_done(0);
  stop(here);
  for (std::uint64_t step = 1; step < 5; ++step) here.all_done(step);
  here.all_held(5);
  here.written(5, 0, "the disk is full");
  REQUIRE(here.members.stops.size() == 1);
  CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 5, which could not be saved in ") &&
                                        EndsWith("is kept: --resume continues from it"));
}

TEST_CASE(
    "without a snapshot folder a stop ends the job at once, and the message names the option that saves the "
    "state") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  here.all_done(0);
  stop(here);
  REQUIRE(here.members.stops.size() == 1);
  CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 1") && ContainsSubstring("--snapshot-dir"));
}

TEST_CASE("before the first step, in an evaluation and between calls there is nothing to save") {
  one_scheduler before({.window = 8, .on_disk = true}), inside({.window = 8, .on_disk = true}),
      between({.window = 8, .on_disk = true});
  stop(before);
  CHECK(before.members.stops.size() == 1);
  for (auto* here : {&inside, &between}) {
    here->begin_training(1);
    here->all_done(0);
    here->all_held(1);
    here->all_written(1);
    here->all_seen(0);
  }
  stop(between);
  REQUIRE(between.members.stops.size() == 1);
  CHECK_THAT(between.members.stops[0], ContainsSubstring("at step 1, which is saved in "));
  inside.all_enter(inside.evaluate(1, 1, 5));
  stop(inside);
  CHECK(inside.members.stops == between.members.stops);
}

TEST_CASE("a stop during a recovery waits for the recovery, since only memory holds the state") {
  one_scheduler here({.generation = 2, .window = 4, .on_disk = true, .disk_interval = 1000s});
  stop(here);
  here.enter(0, here.train(0, 100), {{7, {0}, 1, own}, {7, {1}, 1, peer}});
  here.enter(1, here.train(0, 100), {{7, {1}, 1, own}, {7, {0}, 1, peer}});
  CHECK(here.members.stops.empty());
  here.all_restored();
  CHECK(here.granted().end_step == 8);
  here.all_done(7);
  here.all_held(8);
  here.all_written(8);
  REQUIRE(here.members.stops.size() == 1);
  CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 8, which is saved in "));
}

TEST_CASE("a stop soon after the loss of rank 0 waits for its program, since others hold the state") {
  one_scheduler here(
      {.generation = 2, .window = 4, .on_disk = true, .disk_interval = 1000s, .knows_job = false});
  stop(here);
  here.actors.send(here.scheduler,
                   actors::messages::copies_held{2, {1, 0, {{7, {1}, 1, own}, {7, {0}, 1, peer}}, 0}});
  here.actors.send(here.scheduler, actors::messages::call_entered{2, 1, here.train(0, 100), 0, 0, 7});
  here.actors.advance(2s);
  CHECK(here.members.stops.empty());
  here.know_job();
  here.enter(0, here.train(0, 100));
  here.all_restored();
  here.all_done(7);
  here.all_held(8);
  here.all_written(8);
  REQUIRE(here.members.stops.size() == 1);
  CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 8, which is saved in "));
}

TEST_CASE(
    "a stop after the loss of rank 0 ends a job of which no process is in a call, or that trains nothing") {
  one_scheduler between({.generation = 2, .knows_job = false}),
      without_job({.generation = 2, .knows_job = false});
  for (auto* here : {&between, &without_job}) {
    stop(*here);
    CHECK(here->members.stops.empty());
  }
  without_job.enter(1, without_job.barrier(0));
  for (auto* here : {&between, &without_job}) {
    here->actors.advance(1s);
    REQUIRE(here->members.stops.size() == 1);
    CHECK_THAT(here->members.stops[0],
               ContainsSubstring("rank 0, which was restarted") && ContainsSubstring("--resume"));
  }
}
