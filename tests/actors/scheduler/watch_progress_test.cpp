// The job has two devices, 0F0 0F1 0B0 0B1 and 1F0 1F1 1B0 1B1, and a limit of 60 s.
#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sstream>

#include "one_scheduler.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/scheduler/progress_watch.hpp"

using namespace troupe;
using namespace troupe::actors::scheduler;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr auto computing = schedule::device_activity::computing;
constexpr auto waiting = schedule::device_activity::waiting_for_tensor;

struct watched_job : one_scheduler {
  explicit watched_job(std::uint64_t generation = 1, bool knows_job = true)
      : one_scheduler({.generation = generation, .knows_job = knows_job, .progress_timeout = 60s}) {}

  void at(int rank, schedule::device_activity activity, std::uint32_t action, double for_s,
          std::uint64_t step = 0) {
    actors::messages::device_progress one{
        static_cast<std::uint32_t>(rank), {0, actors::job::call_kind::train, activity, step, action}, for_s};
    actors.send(scheduler, actors::messages::process_progress{with.generation, rank, {one}, 0, 0});
  }
};

}  // namespace

TEST_CASE("a limit that is too short for enough samples is refused with the least one, and 0 is none") {
  for (auto good : {0ms, 320ms, 600'000ms}) CHECK_NOTHROW(check_progress_timeout(good));
  for (auto bad : {1ms, 319ms}) CHECK_THROWS_AS(check_progress_timeout(bad), bad_input);
  CHECK_THROWS_WITH(
      check_progress_timeout(1ms),
      ContainsSubstring("--progress-timeout: expected at least 320ms") && ContainsSubstring("got 1ms"));
}

TEST_CASE(
    "a device that does not return is named with all that wait for it at half the limit, and suspected at "
    "the limit") {
  watched_job here;
  here.begin_training(10);
  here.at(0, waiting, 2, 30);
  here.at(1, computing, 1, 29);
  CHECK(here.logged().empty());
  here.at(1, computing, 1, 31);
  CHECK(here.logged().find(
            "device 0 waits for 1B0 of device 1 since 30.0 s; device 1 has been computing 1F1 of "
            "step 0 for 31.0 s") != std::string::npos);
  CHECK(here.members.suspects.empty());
  here.at(1, computing, 1, 61);
  here.at(1, computing, 1, 65);
  REQUIRE(here.members.suspects.size() == 1);
  CHECK(here.members.suspects[0].first == 1);
  // Without times: the launcher recognizes the same failure by it.
  CHECK(here.members.suspects[0].second ==
        "device 1 does not return from 1F1 of step 0 (no progress within 60 s, the limit that "
        "--progress-timeout sets)");
}

TEST_CASE("no process is suspected before the state of every device in the chain is known") {
  watched_job here;
  here.begin_training(10);
  here.at(0, waiting, 2, 100);
  CHECK(here.members.suspects.empty());
  here.at(1, computing, 1, 100);
  CHECK(here.members.suspects.size() == 1);
}

TEST_CASE("old progress reports of a process are ignored") {
  watched_job here;
  here.begin_training(10);
  here.at(1, computing, 1, 100, 7);  // of a step that is not granted: forgotten in time
  here.members.suspects.clear();
  watched_job other;
  other.begin_training(10);
  other.at(1, waiting, 0, 10);
  other.actors.advance(30s);
  other.at(0, waiting, 2, 100);
  CHECK(other.members.suspects.empty());
  CHECK(other.members.requests.empty());
}

TEST_CASE("a tensor that was sent and did not arrive causes a request for a new generation") {
  watched_job here;
  here.begin_training(10);
  here.at(0, waiting, 2, 70);
  here.at(1, waiting, 0, 65);
  CHECK(here.members.suspects.empty());
  REQUIRE(here.supervisors[0].all<actors::messages::restart_requested>().size() == 1);
  CHECK(here.supervisors[0].last<actors::messages::restart_requested>().cause.find(
            "device 1 has not got what device 0 sent after 0F0 of step 0") == 0);
}

TEST_CASE("progress reports of other generations and calls are ignored") {
  watched_job here(3);
  here.begin_training(10);
  here.actors.send(here.scheduler,
                   actors::messages::process_progress{
                       2, 1, {{1, {0, actors::job::call_kind::train, computing, 0, 1}, 100}}, 0, 0});
  here.actors.send(here.scheduler,
                   actors::messages::process_progress{
                       3, 1, {{1, {9, actors::job::call_kind::train, computing, 0, 1}, 100}}, 0, 0});
  // Far outside of the plan, as only a damaged report could be.
  here.actors.send(here.scheduler,
                   actors::messages::process_progress{
                       3, 1, {{1, {0, actors::job::call_kind::train, computing, 0, 77}, 100}}, 0, 0});
  here.actors.send(here.scheduler,
                   actors::messages::process_progress{
                       3, 1, {{8, {0, actors::job::call_kind::train, computing, 0, 1}, 100}}, 0, 0});
  CHECK(here.members.suspects.empty());
}

TEST_CASE("a process that does not enter a call is named and not killed") {
  watched_job here;
  here.enter(0, here.train(0, 10));
  for (int i = 0; i < 8; ++i) {
    here.at(0, schedule::device_activity::idle, 0, 100);
    here.actors.advance(10s);
  }
  CHECK(here.logged().find("waiting for ranks that have not entered call 0: 1") != std::string::npos);
  CHECK(here.members.suspects.empty());
  CHECK(here.members.failures.empty());
}

TEST_CASE(
    "a device that does not return from a copy of the state is suspected when all steps are done, too") {
  watched_job here;
  here.begin_training(1);
  here.all_done(0);
  here.at(0, schedule::device_activity::idle, 0, 100, 1);
  here.at(1, schedule::device_activity::idle, 0, 100, 1);
  CHECK(here.members.suspects.empty());
  here.at(1, schedule::device_activity::copying_state, 0, 31, 1);
  CHECK(here.members.suspects.empty());
  here.at(1, schedule::device_activity::copying_state, 0, 61, 1);
  REQUIRE(here.members.suspects.size() == 1);
  CHECK(here.members.suspects[0].first == 1);
}

TEST_CASE("a process that does not come to a barrier is named, and without a Trainer the barrier fails") {
  for (bool has_trainer : {true, false}) {
    watched_job here(1, has_trainer);
    auto wait = [&](int seconds) {
      for (int i = 0; i < seconds; i += 5) {
        here.actors.send(here.scheduler, actors::messages::process_progress{1, 0, {}, 0, 0});
        here.actors.advance(5s);
      }
    };
    wait(40);  // of an earlier call
    here.enter(0, here.barrier(0));
    wait(30);
    CHECK(here.logged().empty());
    wait(10);
    CHECK(here.logged().find("for=30.0s, waiting for ranks that have not entered call 0: 1") !=
          std::string::npos);
    CHECK(here.members.failures.empty());
    wait(100);
    if (has_trainer)
      CHECK(here.members.failures.empty());
    else
      CHECK(here.members.failures ==
            std::vector<std::string>{
                "World::barrier waits for ranks that have not entered call 0: 1 (not within 60 s, the limit "
                "that --progress-timeout sets; 0 is none)"});
    CHECK(here.members.suspects.empty());
  }
}

TEST_CASE("without a limit no progress is watched") {
  one_scheduler here;
  here.begin_training(10);
  here.actors.send(here.scheduler,
                   actors::messages::process_progress{
                       1, 1, {{1, {0, actors::job::call_kind::train, computing, 0, 1}, 1e6}}, 0, 0});
  CHECK(here.members.suspects.empty());
}
