#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"
#include "support/drained.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a call begins only when every process has entered it") {
  one_scheduler here({.world_size = 3});
  here.enter(2, here.train(0, 10));
  here.enter(0, here.train(0, 10));
  CHECK(here.num_orders() == 0);
  here.enter(0, here.train(0, 10));  // again
  CHECK(here.num_orders() == 0);
  here.enter(1, here.train(0, 10));
  CHECK(here.num_orders() == 1);
  CHECK(here.members.failures.empty());
}

TEST_CASE("calls that differ fail the job, naming who does what") {
  one_scheduler here;
  here.enter(0, here.train(0, 10));
  here.enter(1, here.train(0, 20));
  REQUIRE(here.members.failures.size() == 1);
  const auto& cause = here.members.failures[0];
  CHECK(cause.find("rank 0: train (call 0, source 0, step 10") != std::string::npos);
  CHECK(cause.find("rank 1: train (call 0, source 0, step 20") != std::string::npos);
  CHECK(here.num_orders() == 0);
}

TEST_CASE("messages of other generations are ignored") {
  one_scheduler here({.generation = 3});
  for (std::uint64_t other : {2, 4})
    for (int rank : {0, 1})
      here.actors.send(here.scheduler, call_entered{other, {rank, 0, {}}, here.train(0, 10), {}, 0});
  CHECK(here.num_orders() == 0);
  here.all_enter(here.train(0, 10));
  for (std::uint64_t other : {2, 4})
    for (int rank : {0, 1}) here.actors.send(here.scheduler, node_restored{other, rank, {}});
  CHECK(here.num_grants() == 0);
  here.all_restored();
  CHECK(here.num_grants() == 1);
  for (std::uint64_t other : {2, 4})
    for (std::uint32_t device : {0u, 1u}) {
      step_done report;
      report.generation = other;
      report.device = device;
      here.actors.send(here.scheduler, report);
    }
  CHECK(drained(*here.client).empty());
}

TEST_CASE("a barrier needs no job and restores nothing") {
  one_scheduler here({.knows_job = false});
  here.all_enter(here.barrier(0));
  CHECK(here.num_orders() == 0);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("a barrier says how many steps are done although nothing is restored") {
  one_scheduler here({.generation = 2});
  here.all_enter(here.barrier(1), {finished_training(0, 7)});
  CHECK(here.result(1).steps_done == 7);
}

TEST_CASE("the own node hears of a result last, when all others have confirmed it") {
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

TEST_CASE("a confirmation that does not come holds the own node up for a while only") {
  one_scheduler here({.world_size = 3});
  here.all_enter(here.barrier(0));
  here.seen(1, 0);
  here.actors.advance(4s);
  CHECK(here.finished(0).empty());
  here.actors.advance(2s);
  CHECK(here.finished(0) == numbers{0});
  here.seen(2, 0);
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("the wait for one call's confirmations does not end the next one's") {
  one_scheduler here;
  here.all_enter(here.barrier(0));
  here.actors.advance(3s);
  here.seen(1, 0);
  here.all_enter(here.barrier(1));
  here.actors.advance(3s);  // 6 s after the first, 3 s after the second
  CHECK(here.finished(0) == numbers{0});
  here.actors.advance(3s);
  CHECK(here.finished(0) == numbers{0, 1});
}

TEST_CASE("a process of one hears at once") {
  one_scheduler here({.world_size = 1});
  here.all_enter(here.barrier(0));
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("a node that missed the end of a call gets its result, and the others wait for it") {
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

TEST_CASE("it gets the result, too, if it entered before anyone who knows it") {
  one_scheduler here({.generation = 2});
  here.enter(1, here.train(0, 12));
  CHECK(here.finished(1).empty());
  here.enter(0, here.barrier(1), {}, {finished_training(0, 12)});
  CHECK(here.finished(1) == numbers{0});
}
