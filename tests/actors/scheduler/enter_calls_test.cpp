#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"
#include "support/drained.hpp"
#include "troupe/actor/actor_error.hpp"
#include "troupe/wire/codec.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a call begins only when every process has entered it") {
  one_scheduler here({.world_size = 3});
  here.enter(2, here.train(0, 10));
  here.enter(0, here.train(0, 10));
  CHECK(here.num_commands() == 0);
  here.enter(0, here.train(0, 10));  // again
  CHECK(here.num_commands() == 0);
  here.enter(1, here.train(0, 10));
  CHECK(here.num_commands() == 1);
  CHECK(here.members.failures.empty());
}

TEST_CASE(
    "calls that differ are refused on all processes, naming each rank's call, and nothing is restored") {
  one_scheduler here;
  here.enter(0, here.train(0, 10));
  here.enter(1, here.train(0, 20));
  CHECK(here.num_commands() == 0);
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).refused.find("steps at its end: rank 1 has 20, rank 0 has 10") != std::string::npos);
  CHECK(here.finished(0).empty());  // last, when the other has heard it
  here.seen(1, 0);
  CHECK(here.result(0).refused == here.result(1).refused);
}

TEST_CASE("jobs that differ are refused before anything is restored, among two, three or more") {
  for (int world_size : {2, 3, 5}) {
    for (int odd = 0; odd < world_size; ++odd) {
      one_scheduler here({.world_size = world_size});
      for (int rank = 0; rank < world_size; ++rank) {
        agreement::job_description job;
        job.add("seed", "1");
        job.add("microbatches", rank == odd ? "4" : "8");
        here.actors.send(here.scheduler,
                         actors::messages::call_entered{1, rank, here.train(0, 10), {}, 0, job.hash(), job});
      }
      CHECK(here.num_commands() == 0);
      CHECK(here.num_credits() == 0);
      here.all_seen(0);
      for (int rank = 0; rank < world_size; ++rank) {
        CHECK(here.result(rank).refused.find("microbatches: ") != std::string::npos);
        CHECK(here.result(rank).refused.find("rank " + std::to_string(odd) + " has 4") != std::string::npos);
        CHECK(here.result(rank).refused.find("seed") == std::string::npos);
      }
    }
  }
}

TEST_CASE("a process restarted with another job is refused in its generation") {
  one_scheduler here({.generation = 2});
  for (int rank : {0, 1}) {
    agreement::job_description job;
    job.add("seed", rank == 0 ? "1" : "7");
    here.actors.send(here.scheduler,
                     actors::messages::call_entered{2, rank, here.train(0, 10), {}, 0, job.hash(), job});
  }
  CHECK(here.num_commands() == 0);
  CHECK(here.result(1).refused.find("seed: rank 1 has 7, rank 0 has 1") != std::string::npos);
}

TEST_CASE("messages of other generations are ignored") {
  one_scheduler here({.generation = 3});
  for (std::uint64_t other : {2, 4})
    for (int rank : {0, 1})
      here.actors.send(here.scheduler, actors::messages::call_entered{other, rank, here.train(0, 10), {}, 0});
  CHECK(here.num_commands() == 0);
  here.all_enter(here.train(0, 10));
  for (std::uint64_t other : {2, 4})
    for (int rank : {0, 1})
      here.actors.send(here.scheduler, actors::messages::process_restored{other, rank, {}});
  CHECK(here.num_credits() == 0);
  here.all_restored();
  CHECK(here.num_credits() == 1);
  for (std::uint64_t other : {2, 4})
    for (std::uint32_t device : {0u, 1u}) {
      actors::messages::step_done report;
      report.generation = other;
      report.device = device;
      here.actors.send(here.scheduler, report);
    }
  CHECK(drained(*here.client).empty());
}

TEST_CASE("a barrier needs no job and restores nothing") {
  one_scheduler here({.knows_job = false});
  here.all_enter(here.barrier(0));
  CHECK(here.num_commands() == 0);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("the result of a barrier names the finished steps although nothing is restored") {
  one_scheduler here({.generation = 2});
  here.all_enter(here.barrier(1), {finished_training(0, 7)});
  CHECK(here.result(1).steps_done == 7);
}

TEST_CASE("the scheduler's own process gets a result last, after all others have confirmed it") {
  one_scheduler here({.world_size = 3});
  here.all_enter(here.barrier(0));
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.finished(2) == numbers{0});
  CHECK(here.finished(0).empty());
  here.seen(2, 0);
  here.seen(2, 0);
  CHECK(here.finished(0).empty());
  here.seen(1, 1);  // of a call that is none yet
  CHECK(here.finished(0).empty());
  here.seen(1, 0);
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE(
    "a process that does not confirm a result delays the scheduler's own process for a limited time only") {
  one_scheduler here({.world_size = 3});
  here.all_enter(here.barrier(0));
  here.seen(1, 0);
  CHECK(here.finished(0).empty());
  here.supervisors[2].answer(
      make_error(actors::actor::actor_error::timed_out, "supervisor/2#0 has not replied within 10 s"));
  CHECK(here.finished(0) == numbers{0});
  CHECK(here.logged().find("supervisor/2#0 has not replied within 10 s") != std::string::npos);
}

TEST_CASE("the next generation tells the result to a process that is lost before it confirms") {
  one_scheduler here({.world_size = 3});
  here.all_enter(here.barrier(0));
  here.seen(1, 0);
  here.supervisors[2].answer(
      make_error(actors::actor::actor_error::lost, "supervisor/2#0 cannot be reached any more"));
  CHECK(here.finished(0).empty());
}

TEST_CASE("a late confirmation of one call does not confirm the next") {
  one_scheduler here({.world_size = 3});
  here.all_enter(here.barrier(0));
  here.seen(1, 0);
  here.supervisors[2].answer(
      make_error(actors::actor::actor_error::timed_out, "supervisor/2#0 has not replied within 10 s"));
  here.all_enter(here.barrier(1), {finished_training(0, 0)});
  here.seen(1, 1);
  CHECK(here.finished(0) == numbers{0});
  here.seen(2, 1);
  CHECK(here.finished(0) == numbers{0, 1});
}

TEST_CASE("a process that does not send the results of earlier calls costs a new generation") {
  one_scheduler here({.generation = 2});
  here.actors.send(here.scheduler, actors::messages::call_entered{2, 1, here.train(1, 2), 1, 0});
  here.supervisors[1].answer(
      make_error(actors::actor::actor_error::timed_out, "supervisor/1#0 has not replied within 10 s"));
  CHECK(here.supervisors[0].last<actors::messages::restart_requested>().cause ==
        "rank 1 has not sent the results of earlier calls: supervisor/1#0 has not replied within 10 s");
}

TEST_CASE("in a world of one process the result is delivered at once") {
  one_scheduler here({.world_size = 1});
  here.all_enter(here.barrier(0));
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("a process that missed the end of a call gets its result, and the others wait for it") {
  one_scheduler here({.generation = 2});
  auto before = finished_training(0, 12);
  here.enter(0, here.barrier(1), {}, {before});
  here.enter(1, here.train(0, 12));
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1) == before);
  CHECK(here.finished(0).empty());
  here.enter(1, here.barrier(1), {}, {before});
  CHECK(here.finished(1) == numbers{0, 1});
}

TEST_CASE(
    "a process that missed the end of a call gets its result also if it enters before the processes that "
    "know it") {
  one_scheduler here({.generation = 2});
  here.enter(1, here.train(0, 12));
  CHECK(here.finished(1).empty());
  here.enter(0, here.barrier(1), {}, {finished_training(0, 12)});
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("a new scheduler fetches the results of calls in bounded pieces from a process that has them") {
  one_scheduler here({.generation = 2});
  auto known = [&](std::uint32_t first, std::uint32_t end) {
    std::vector<actors::job::call_result> results;
    for (auto index = first; index < end; ++index) results.push_back(finished_training(index, index + 1));
    here.supervisors[1].answer(actors::messages::known_results{results});
  };
  here.actors.send(here.scheduler, actors::messages::call_entered{2, 0, here.train(0, 1), 0, 0});
  here.actors.send(here.scheduler, actors::messages::call_entered{2, 1, here.train(300, 301), 300, 0});
  CHECK(here.supervisors[1].last<actors::messages::want_results>().first == 0);
  CHECK(here.finished(0).empty());
  known(0, 256);
  CHECK(here.supervisors[1].last<actors::messages::want_results>().first == 256);
  known(256, 300);
  CHECK(here.supervisors[1].all<actors::messages::want_results>().size() == 2);
  CHECK(here.finished(0).size() == 256);
  CHECK(here.finished(1).empty());
  here.actors.send(here.scheduler, actors::messages::call_entered{2, 0, here.train(256, 257), 256, 0});
  CHECK(here.finished(0).size() == 300);
  here.actors.send(here.scheduler, actors::messages::call_entered{2, 0, here.train(300, 301), 300, 0});
  CHECK(here.num_commands() == 1);
}

TEST_CASE("the size of a call's result message does not grow with the calls before it") {
  one_scheduler here({.world_size = 1});
  std::size_t first_bytes = 0;
  for (std::uint32_t index = 0; index < 1000; ++index) {
    here.actors.send(here.scheduler, actors::messages::call_entered{1, 0, here.barrier(index), index, 0});
    REQUIRE(here.finished(0).size() == index + 1);
    if (index == 0)
      first_bytes = wire::encode(here.supervisors[0].last<actors::messages::call_finished>()).size();
  }
  CHECK(wire::encode(here.supervisors[0].last<actors::messages::call_finished>()).size() == first_bytes);
}

TEST_CASE("a process whose program is still in a call gets its result, even if its log has it already") {
  one_scheduler here({.generation = 2});
  here.enter(1, here.barrier(1), {}, {finished_training(0, 12)});
  here.enter(0, here.train(0, 12), {}, {finished_training(0, 12)});
  CHECK(here.finished(0) == numbers{0});
}
