#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a process reports the positions of its devices only while one of them stands still") {
  one_process here;
  here.watch_progress(60s);
  here.begin();
  here.train(1);
  here.advance(10s);
  CHECK(here.sent<actors::messages::process_progress>().empty());
  for (int i = 0; i < 8; ++i) here.advance(4s);
  REQUIRE(!here.sent<actors::messages::process_progress>().empty());
  auto told = here.sent<actors::messages::process_progress>().back();
  CHECK(told.generation == 1);
  CHECK(told.rank == 1);
  REQUIRE(told.devices.size() == 1);
  CHECK(told.devices[0].device == 1);
  CHECK(told.devices[0].for_s >= 15);
}

TEST_CASE("a process whose program has no devices reports while it is in a barrier") {
  one_process here;
  here.watch_progress(60s);
  here.view(1);
  here.advance(30s);
  CHECK(here.sent<actors::messages::process_progress>().empty());
  here.enter(0, actors::job::call_kind::barrier);
  here.advance(4s);
  REQUIRE_FALSE(here.sent<actors::messages::process_progress>().empty());
  CHECK(here.sent<actors::messages::process_progress>().back().devices.empty());
}

TEST_CASE("a device that waits for a tensor reports that it waits") {
  one_process here;
  here.watch_progress(60s);
  here.begin();
  here.give(1, 0, 1);
  for (int i = 0; i < 8; ++i) here.advance(4s);
  auto told = here.sent<actors::messages::process_progress>().back();
  CHECK(told.devices[0].position ==
        actors::messages::execution_position{0, actors::job::call_kind::train,
                                             schedule::device_activity::waiting_for_tensor, 0, 0});
}

TEST_CASE(
    "time in which a process was stopped by a debugger or its machine slept does not count as standing "
    "still") {
  one_process here;
  here.watch_progress(60s);
  here.begin();
  here.give(1, 0, 1);
  here.advance(100'000s);
  here.advance(4s);
  CHECK(here.sent<actors::messages::process_progress>().empty());
}

TEST_CASE("a process without a progress limit reports nothing") {
  one_process here;
  here.begin();
  here.advance(10000s);
  CHECK(here.sent<actors::messages::process_progress>().empty());
}

TEST_CASE(
    "a lost tensor requests a new generation at once, but not one that is unauthenticated or of another "
    "generation") {
  one_process here;
  here.begin();
  here.actors.send(here.supervisor,
                   actors::messages::tensor_lost{-1, 1, "its header is not authentic or has another format"});
  here.actors.send(here.supervisor, actors::messages::tensor_lost{0, 7, "of another generation"});
  here.advance(1s);
  CHECK(here.members.requests.empty());
  here.actors.send(here.supervisor, actors::messages::tensor_lost{0, 1, "there is no memory for it"});
  here.advance(1s);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0] ==
        std::pair<std::uint64_t, std::string>{
            1, "a tensor from rank 0 was lost on rank 1: there is no memory for it"});
}

TEST_CASE("tensors that are lost again and again end the job") {
  one_process here;
  here.begin();
  for (int i = 0; i < 4; ++i)
    here.actors.send(here.supervisor, actors::messages::tensor_lost{0, 1, "there is no memory for it"});
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("and again after 3 restarts") != std::string::npos);
}

TEST_CASE(
    "repeated stalls at one position end the job, however long each takes; stalls at different positions do "
    "not") {
  one_process here(0);
  here.begin();
  auto stall = [&](const std::string& cause) {
    here.actors.send(here.supervisor, actors::messages::restart_requested{1, cause});
    here.advance(600s);
  };
  for (int step = 0; step < 10; ++step) stall("device 1 has not got 0F0 of step " + std::to_string(step));
  CHECK(here.members.failures.empty());
  for (int i = 0; i < 4; ++i) stall("device 1 has not got 0F0 of step 40");
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0] == "device 1 has not got 0F0 of step 40 (and again after 3 restarts)");
}

namespace {

/// Goes on to the generation that was asked for.
void begin_next(one_process& here, std::uint64_t generation) {
  here.fence(generation);
  here.view(generation);
}

}  // namespace

TEST_CASE("groups of replicas that fail ask for a generation once, unless the agent begins one for a loss") {
  one_process here;
  here.begin();
  auto fail = [&here](std::uint64_t generation) {
    for (const char* cause : {"stage 0: connection broken", "stage 1: connection broken"})
      here.actors.send(here.supervisor, actors::messages::replica_group_failed{generation, cause});
  };
  fail(1);
  here.advance(1s);
  begin_next(here, 2);  // a process was lost
  here.advance(10s);
  CHECK(here.members.requests.empty());
  fail(1);  // late
  fail(2);
  here.advance(1s);
  CHECK(here.members.requests.empty());
  for (int i = 0; i < 10; ++i) here.advance(1s);
  REQUIRE(here.members.requests.size() == 1);
  CHECK(here.members.requests[0] ==
        std::pair<std::uint64_t, std::string>{
            2, "replicas cannot add up gradients on rank 1: stage 0: connection broken"});
}

TEST_CASE("groups of replicas that fail in generation after generation, without a step, end the job") {
  one_process here;
  here.begin();
  for (std::uint64_t generation = 1; generation <= 4; ++generation) {
    CHECK(here.members.failures.empty());
    std::string cause = "no route in generation ";
    cause += std::to_string(generation);
    here.actors.send(here.supervisor, actors::messages::replica_group_failed{generation, cause});
    for (int i = 0; i < 10; ++i) here.advance(1s);
    begin_next(here, generation + 1);
  }
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0] ==
        "replicas cannot add up gradients on rank 1: no route in generation 4 (and again after 3 restarts)");
}

TEST_CASE("a group of replicas that is refused ends the job at once, as bad input") {
  one_process here;
  here.begin();
  here.actors.send(here.supervisor, actors::messages::replica_group_failed{
                                        1, "start one process for each rank", failure_kind::bad_input});
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0] ==
        "replicas cannot add up gradients on rank 1: start one process for each rank");
}
