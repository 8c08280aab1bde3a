// What a supervisor does with the commands of those who watch the job.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "one_process.hpp"
#include "support/drained.hpp"
#include "troupe/messages/supervisor_commands.hpp"

using namespace troupe;
using namespace troupe::actors::supervisor;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

actors::messages::end_actor command_of(child_role role, int number, bool is_failure) {
  return {1, "0-1", 0, {role, number}, static_cast<std::uint8_t>(is_failure)};
}

std::uint32_t starts_of(one_process& here, child_role role) {
  auto report = ask<actors::messages::process_report>(here.actors, here.supervisor,
                                                      actors::messages::inspect_process{1})
                    .value.value();
  for (const auto& one : report.children)
    if (one.id.role == role) return one.starts;
  return 0;
}

answer<actors::messages::command_carried_out> end(one_process& here,
                                                  const actors::messages::end_actor& command) {
  return ask<actors::messages::command_carried_out>(here.actors, here.supervisor, command);
}

}  // namespace

TEST_CASE("a child of io that is killed is started again alone") {
  one_process here;
  here.begin();
  auto role = GENERATE(child_role::loader, child_role::peer_copy_store, child_role::snapshot_writer);
  if (starts_of(here, role) == 0) return;  // a loader that this process does not need
  auto answered = end(here, command_of(role, 0, true));
  REQUIRE(answered.value);
  CHECK(answered.value->starts == 1);
  here.advance(1s);
  CHECK(starts_of(here, role) == 2);
  CHECK(here.members.requests.empty());
}

TEST_CASE("a child of compute that is killed costs a new generation, and the cause names the command") {
  one_process here;
  here.begin();
  auto [role, is_failure] = GENERATE(table<child_role, bool>({{child_role::device, true},
                                                              {child_role::device, false},
                                                              {child_role::stage, true},
                                                              {child_role::stage, false}}));
  REQUIRE(end(here, command_of(role, 1, is_failure)).value);
  here.advance(1s);
  REQUIRE(here.members.requests.size() == 1);
  CHECK_THAT(here.members.requests[0].second,
             ContainsSubstring(is_failure ? "killed by command 0-1" : "restarted by command 0-1"));
  here.fence(2);
  here.view(2);
  CHECK(starts_of(here, role) == 2);
  CHECK(here.members.failures.empty());
}

TEST_CASE("restarts on command do not count, and kills that would end the job are refused") {
  one_process here;
  here.begin();
  std::uint64_t generation = 1;
  auto again = [&](bool is_failure) {
    auto answered = end(here, command_of(child_role::device, 1, is_failure));
    if (!answered.value) return answered.problem;
    here.advance(1s);
    here.fence(++generation);
    here.view(generation);
    here.enter(0);
    here.restore(generation);
    return answered.problem;
  };
  for (int i = 0; i < 5; ++i) CHECK(again(false).empty());
  for (int i = 0; i < 3; ++i) CHECK(again(true).empty());
  CHECK_THAT(again(true), ContainsSubstring("would end the job"));
  CHECK(again(false).empty());
  CHECK(here.members.failures.empty());
}

TEST_CASE("an actor that does not run, or ran in another process, is not ended") {
  one_process here;
  here.begin();
  CHECK_THAT(end(here, command_of(child_role::device, 7, true)).problem, ContainsSubstring("no such actor"));
  auto of_successor = command_of(child_role::device, 1, true);
  of_successor.incarnation = 1;
  CHECK_THAT(end(here, of_successor).problem, ContainsSubstring("no such actor"));
  here.advance(1s);
  CHECK(here.members.requests.empty());
}

TEST_CASE("an inspector that is killed or restarted on command is started again, and disturbs nobody") {
  one_process here(0);  // an inspector is where the scheduler is
  here.inspect();
  here.begin();
  here.advance(1s);
  bool is_failure = GENERATE(false, true);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(end(here, command_of(child_role::inspector, 0, is_failure)).value);
    here.advance(1s);
  }
  CHECK(starts_of(here, child_role::inspector) == 3);
  CHECK(here.members.requests.empty());
}

TEST_CASE("a process ends on command after its agent has heard why") {
  one_process here;
  here.launch();
  here.begin();
  auto ask_end = [&](std::uint32_t incarnation, bool is_failure) {
    return ask<actors::messages::command_carried_out>(
        here.actors, here.supervisor,
        actors::messages::end_process{1, "0-1", incarnation, static_cast<std::uint8_t>(is_failure)});
  };
  CHECK_THAT(ask_end(1, true).problem, ContainsSubstring("was replaced"));
  SECTION("by SIGKILL") {
    REQUIRE(ask_end(0, true).value);
    CHECK(here.members.own_failures == std::vector<std::string>{"killed by command 0-1 of the inspector"});
    CHECK(here.num_kills == 0);
    here.advance(1s);
    CHECK(here.num_kills == 1);
  }
  SECTION("cleanly, and by SIGKILL when it does not") {
    REQUIRE(ask_end(0, false).value);
    here.advance(1s);
    CHECK(here.num_kills == 0);
    auto told = here.failures_told();
    REQUIRE(told.size() == 1);
    CHECK_THAT(told[0], ContainsSubstring("restarted by command 0-1"));
    here.advance(10s);
    CHECK(here.num_kills == 1);
  }
  CHECK_THAT(ask_end(0, true).problem, ContainsSubstring("is ending already"));
}

TEST_CASE("a process that nobody would replace does not end") {
  one_process here;
  here.begin();
  CHECK_THAT(ask<actors::messages::command_carried_out>(here.actors, here.supervisor,
                                                        actors::messages::end_process{1, "0-1", 0, 1})
                 .problem,
             ContainsSubstring("no launcher"));
  CHECK(here.members.own_failures.empty());
}

TEST_CASE("the level of the log is set") {
  one_process here;
  here.begin();
  REQUIRE(ask<actors::messages::command_carried_out>(here.actors, here.supervisor,
                                                     actors::messages::set_log_level{1, "debug"})
              .value);
  REQUIRE(end(here, command_of(child_role::peer_copy_store, 0, true)).value);
  here.advance(1s);
  CHECK_THAT(here.logged(), ContainsSubstring("actor restarted"));  // logged as info
  CHECK_THAT(ask<actors::messages::command_carried_out>(here.actors, here.supervisor,
                                                        actors::messages::set_log_level{1, "loud"})
                 .problem,
             ContainsSubstring("expected a level"));
}

TEST_CASE("a pause on command is answered when the scheduler has carried it out, in a later generation too") {
  one_process here;
  here.begin();
  std::optional<std::uint64_t> version;
  auto asker = here.actors.system().spawn([&](caf::event_based_actor* self) {
    self->request(here.supervisor, caf::infinite, actors::messages::carry_out_pause{})
        .then([&](const actors::messages::pause_carried_out& done) { version = done.version; });
  });
  here.actors.run();
  REQUIRE(here.sent<actors::messages::pause_requested>().size() == 1);
  here.fence(2);
  here.view(2);
  REQUIRE(here.sent<actors::messages::pause_requested>().size() == 2);
  CHECK_FALSE(version);
  actors::job::pause_state state;
  state.version = 1;
  state.request = here.sent<actors::messages::pause_requested>()[1].request.id;
  state.is_paused = 1;
  here.receive(2, {actors::actor::actor_role::supervisor, 1}, actors::messages::pause_changed{2, state});
  CHECK(version == 1);
  caf::anon_send_exit(asker, caf::exit_reason::kill);
  here.actors.run();
}
