#include "troupe/cluster/membership_state.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

using namespace troupe;
using namespace troupe::cluster;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

transport::process_address address_of(int rank, int generation = 0) {
  return {{std::byte(rank), std::byte(generation)}, {std::byte(generation)}};
}

member make_member(int rank, std::uint32_t incarnation = 0, std::string numeric_class = "avx2") {
  return {rank, incarnation, 1000 + rank, "here", std::move(numeric_class), address_of(rank)};
}

/// A state machine with a clock that the test moves by hand.
struct job {
  explicit job(int world_size, bool replaces_lost_members = true,
               std::chrono::milliseconds join_timeout = 10s)
      : state({world_size, join_timeout, 1s, replaces_lost_members},
              std::chrono::steady_clock::time_point()) {}

  membership_outputs join(int rank, std::uint32_t incarnation = 0) {
    return state.joined(make_member(rank, incarnation), now);
  }
  membership_outputs lose(int rank, const std::string& cause = "killed by SIGKILL") {
    return state.process_lost(rank, cause, now, {}, now);
  }
  membership_outputs acknowledge(int rank, std::uint64_t generation) {
    return state.quiesced(rank, generation, address_of(rank, static_cast<int>(generation)), now);
  }
  /// All `ranks` beat every 100 ms for `time`; returns what the ticks brought.
  membership_outputs pass(std::chrono::milliseconds time, const std::vector<int>& beating) {
    membership_outputs all;
    for (auto end = now + time; now < end;) {
      now += 100ms;
      for (int rank : beating) state.heard(rank, now);
      for (auto& output : state.tick(now)) all.push_back(output);
    }
    return all;
  }
  void join_all(int world_size) {
    for (int rank = 0; rank < world_size; ++rank) join(rank);
  }

  std::chrono::steady_clock::time_point now;
  membership_state state;
};

template <class Output>
Output only(const membership_outputs& outputs) {
  REQUIRE(outputs.size() == 1);
  REQUIRE(std::holds_alternative<Output>(outputs[0]));
  return std::get<Output>(outputs[0]);
}

}  // namespace

TEST_CASE("the first view is sent when all ranks have joined, in rank order") {
  job test(3);
  CHECK(test.join(2).empty());
  CHECK(test.join(0).empty());
  auto view = only<send_view>(test.join(1)).view;
  CHECK(view.generation == 1);
  CHECK(view.members == std::vector{make_member(0), make_member(1), make_member(2)});
}

TEST_CASE("a loss fences the survivors, and the view waits for all of them and for the replacement") {
  job test(3);
  test.join_all(3);
  CHECK(only<send_fence>(test.lose(1)) == send_fence{2, {{1, "killed by SIGKILL"}}, {0, 2}});
  CHECK_FALSE(test.state.is_member(1, 0));
  CHECK(test.acknowledge(0, 2).empty());
  SECTION("the replacement joins last") {
    CHECK(test.acknowledge(2, 2).empty());
    auto view = only<send_view>(test.join(1, 1)).view;
    CHECK(view.generation == 2);
    CHECK(view.members[1] == make_member(1, 1));
    CHECK(view.members[0].address == address_of(0, 2));
  }
  SECTION("a survivor acknowledges last") {
    CHECK(test.join(1, 1).empty());
    CHECK(only<send_view>(test.acknowledge(2, 2)).view.generation == 2);
  }
  SECTION("acknowledgements of other generations and duplicates are ignored") {
    CHECK(test.join(1, 1).empty());
    CHECK(test.acknowledge(2, 1).empty());
    CHECK(test.acknowledge(2, 3).empty());
    CHECK(test.acknowledge(0, 2).empty());
    CHECK(only<send_view>(test.acknowledge(2, 2)).view.generation == 2);
    CHECK(test.acknowledge(2, 2).empty());
  }
}

TEST_CASE(
    "another loss while a generation forms starts the next one, and every survivor acknowledges again") {
  job test(3);
  test.join_all(3);
  test.lose(1);
  test.acknowledge(0, 2);
  test.join(1, 1);
  auto fence = only<send_fence>(test.lose(2, "exit code 3"));
  CHECK(fence == send_fence{3, {{1, "killed by SIGKILL"}, {2, "exit code 3"}}, {0, 1}});
  CHECK(test.acknowledge(0, 3).empty());
  CHECK(test.join(2, 1).empty());
  CHECK(only<send_view>(test.acknowledge(1, 3)).view.generation == 3);
}

TEST_CASE("losses before the first view raise the generation too, and cost no recovery report") {
  job test(2);
  CHECK(test.lose(0).empty());  // there is no member to fence
  CHECK(test.state.generation() == 2);
  test.join(1);
  CHECK(test.join(0, 1).size() == 1);
  CHECK(test.state.phase_reached(2, recovery_phase::replayed, test.now).empty());
}

TEST_CASE("a request raises the generation once") {
  job test(2);
  test.join_all(2);
  auto fence = only<send_fence>(test.state.generation_requested(1, "stage 1 failed", test.now));
  CHECK(fence == send_fence{2, {{-1, "stage 1 failed"}}, {0, 1}});
  CHECK(test.state.generation_requested(1, "stage 0 failed", test.now).empty());
  test.acknowledge(0, 2);
  CHECK(only<send_view>(test.acknowledge(1, 2)).view.generation == 2);
}

TEST_CASE("losing a process that has left is no failure") {
  job test(2);
  test.join_all(2);
  only<send_done>(test.state.left(1, test.now));
  CHECK(test.state.has_left(1));
  CHECK(test.lose(1).empty());
  CHECK(test.state.connection_lost(1, test.now).empty());
  CHECK(test.state.process_exited(1, test.now).empty());
  CHECK(test.pass(20s, {0}).empty());
  CHECK(test.state.left(0, test.now).empty());
  CHECK(test.pass(20s, {}).empty());
}

TEST_CASE("the first leave tells the others that the job is over, and later ones send nothing") {
  job test(3);
  test.join_all(3);
  CHECK_FALSE(test.state.is_done());
  only<send_done>(test.state.left(1, test.now));
  CHECK(test.state.is_done());
  CHECK(test.state.left(0, test.now).empty());
  CHECK(test.state.left(2, test.now).empty());
}

TEST_CASE("once the job is over no process counts as lost, and none is waited for") {
  job test(4);
  test.join_all(4);
  test.state.left(0, test.now);
  CHECK(test.lose(1).empty());
  CHECK_FALSE(test.state.has_left(1));
  CHECK_THAT(test.state.refusal(1, 1).value_or(""), ContainsSubstring("not needed"));
  CHECK(test.state.process_exited(2, test.now).empty());
  CHECK(test.state.connection_lost(2, test.now).empty());
  CHECK(test.state.generation_requested(1, "a link failed", test.now).empty());
  CHECK(test.state.failed("no member answers").empty());
  CHECK(test.state.num_present() == 1);
  CHECK(only<kill_process>(test.pass(20s, {})).rank == 3);  // it hangs
  CHECK(test.lose(3).empty());
  CHECK(test.pass(200s, {}).empty());
  CHECK(test.state.num_present() == 0);
}

TEST_CASE("a generation that is being formed when a member leaves is abandoned") {
  job test(3);
  test.join_all(3);
  test.lose(1);
  test.acknowledge(2, 2);
  only<send_done>(test.state.left(0, test.now));
  CHECK(test.acknowledge(2, 2).empty());
  CHECK(test.state.refusal(1, 1).has_value());
  CHECK(test.pass(200s, {2}).empty());
}

TEST_CASE("without a launcher a process that ends once the job is over does not count as lost either") {
  job test(2, false);
  test.join_all(2);
  test.state.left(0, test.now);
  CHECK(test.state.connection_lost(1, test.now).empty());
  CHECK(test.state.num_present() == 0);
}

TEST_CASE("a process without heartbeats is killed once, and its end starts a new generation") {
  job test(2);
  test.join_all(2);
  auto kill = only<kill_process>(test.pass(3s, {0}));
  CHECK(kill.rank == 1);
  CHECK(kill.incarnation == 0);
  CHECK_THAT(kill.cause, ContainsSubstring("no heartbeat for 1.0 s"));
  CHECK(test.state.generation() == 1);
  CHECK(test.state.suspected(1, 0, "unreachable", test.now).empty());
  CHECK(only<send_fence>(test.lose(1)).to == std::vector{0});
  test.acknowledge(0, 2);
  test.join(1, 1);
  CHECK(test.state.suspected(1, 0, "unreachable", test.now).empty());  // about the one that is dead
  CHECK(only<kill_process>(test.state.suspected(1, 1, "unreachable", test.now)) ==
        kill_process{1, 1, "unreachable"});
}

TEST_CASE("times below a second are told in milliseconds") {
  std::chrono::steady_clock::time_point now;
  membership_state late({.world_size = 2, .join_timeout = 5ms}, now);
  CHECK_THAT(only<end_job>(late.tick(now + 5ms)).cause,
             ContainsSubstring("did not join the job within 5 ms."));
  membership_state silent({.world_size = 1, .suspect_after = 250ms}, now);
  silent.joined(make_member(0), now);
  silent.tick(now + 125ms);
  CHECK(silent.tick(now + 249ms).empty());
  CHECK(only<kill_process>(silent.tick(now + 251ms)).cause == "no heartbeat for 251 ms");
}

TEST_CASE("an agent that was suspended itself does not suspect its members") {
  job test(2);
  test.join_all(2);
  test.now += 1h;
  CHECK(test.state.tick(test.now).empty());
  CHECK(only<kill_process>(test.pass(1500ms, {0})).rank == 1);
}

TEST_CASE("no view is made while a suspect waits for its death") {
  job test(3);
  test.join_all(3);
  test.lose(0);
  test.state.suspected(1, 0, "unreachable", test.now);
  test.join(0, 1);
  test.acknowledge(1, 2);
  CHECK(test.acknowledge(2, 2).empty());
  CHECK(only<send_fence>(test.lose(1)).to == std::vector{0, 2});
}

TEST_CASE("a survivor that sends heartbeats but never acknowledges is killed after the limit") {
  job test(3);
  test.join_all(3);
  test.pass(1min, {0, 1, 2});
  test.lose(0);
  test.join(0, 1);
  test.acknowledge(1, 2);
  CHECK(test.pass(9900ms, {0, 1, 2}).empty());
  auto kill = only<kill_process>(test.pass(200ms, {0, 1, 2}));
  CHECK(kill.rank == 2);
  CHECK_THAT(kill.cause, ContainsSubstring("did not stop for generation 2"));
}

TEST_CASE("a survivor with an action longer than the limit is waited for while it says that it computes") {
  job test(3);
  test.join_all(3);
  test.lose(0);
  test.join(0, 1);
  test.acknowledge(1, 2);
  for (int i = 0; i < 10; ++i) {
    CHECK(test.pass(9s, {0, 1, 2}).empty());
    CHECK(test.state.still_computing(2, 2, test.now).empty());
  }
  CHECK(test.state.still_computing(2, 1, test.now + 9s).empty());  // of a generation that is over
  CHECK(test.pass(9900ms, {0, 1, 2}).empty());
  CHECK(only<kill_process>(test.pass(200ms, {0, 1, 2})).rank == 2);
}

TEST_CASE("a member has some seconds to stop, however short the limit of joining is") {
  job test(2, true, 300ms);
  test.join_all(2);
  only<send_fence>(test.state.generation_requested(1, "an actor failed", test.now));
  test.acknowledge(0, 2);
  CHECK(test.pass(4900ms, {0, 1}).empty());
  CHECK(only<kill_process>(test.pass(200ms, {0, 1})).rank == 1);
}

TEST_CASE("what a member says after the agent was suspended does not count from the future") {
  job test(3);
  test.join_all(3);
  test.lose(0);
  test.join(0, 1);
  test.acknowledge(1, 2);
  test.now += 1h;
  test.state.still_computing(2, 2, test.now);
  CHECK(test.state.tick(test.now).empty());
  CHECK(test.pass(9900ms, {0, 1, 2}).empty());
  CHECK(only<kill_process>(test.pass(200ms, {0, 1, 2})).rank == 2);
}

TEST_CASE("under a launcher a process with a broken connection is killed, since it can send no heartbeat") {
  job test(2);
  test.join_all(2);
  CHECK(test.state.connection_lost(1, test.now).empty());
  CHECK_THAT(only<kill_process>(test.pass(2s, {0})).cause, ContainsSubstring("connection broke"));
}

TEST_CASE("without a launcher a loss ends the job, with the rank, the cause and what to do") {
  auto check = [](const membership_outputs& outputs, const std::string& cause) {
    CHECK_THAT(
        only<end_job>(outputs).cause,
        ContainsSubstring("rank 1") && ContainsSubstring(cause) &&
            ContainsSubstring("If the job has a snapshot (--snapshot-dir), --resume continues from it"));
  };
  job test(2, false);
  test.join_all(2);
  SECTION("process") { check(test.lose(1), "killed by SIGKILL"); }
  SECTION("connection") { check(test.state.connection_lost(1, test.now), "connection closed"); }
  SECTION("silence") { check(test.pass(1500ms, {0}), "no heartbeat"); }
  SECTION("suspicion") {
    check(test.state.suspected(1, 0, "cannot be reached", test.now), "cannot be reached");
  }
  CHECK(test.state.job_ended());
  CHECK(test.lose(0).empty());
}

TEST_CASE("members that do not join in time are named") {
  job test(4);
  test.join(1);
  test.join(3);
  CHECK(test.pass(9900ms, {1, 3}).empty());
  CHECK_THAT(only<end_job>(test.pass(100ms, {1, 3})).cause, ContainsSubstring("ranks 0, 2 of 4"));
}

TEST_CASE("a restarted process has the whole join timeout") {
  job test(2);
  test.join_all(2);
  CHECK(test.pass(60s, {0, 1}).empty());
  test.lose(1);
  test.acknowledge(0, 2);
  CHECK(test.pass(9s, {0}).empty());
  CHECK(only<kill_process>(test.pass(1s, {0})).rank == 1);
}

TEST_CASE("a replacement that does not join in time is killed, and the next one may join") {
  job test(3);
  test.join_all(3);
  CHECK(test.pass(60s, {0, 1, 2}).empty());
  test.lose(1);
  for (int rank : {0, 2}) test.acknowledge(rank, 2);
  auto kill = only<kill_process>(test.pass(10s, {0, 2}));
  CHECK(kill.rank == 1);
  CHECK(kill.incarnation == 1);
  CHECK_THAT(kill.cause, ContainsSubstring("did not join the job within 10.0 s"));
  CHECK(test.pass(9900ms, {0, 2}).empty());
  CHECK(only<kill_process>(test.pass(100ms, {0, 2})).incarnation == 1);  // the launcher may have missed it
  test.lose(1);
  for (int rank : {0, 2}) test.acknowledge(rank, 3);
  CHECK(only<send_view>(test.join(1, 2)).view.generation == 3);
  CHECK_FALSE(test.state.job_ended());
}

TEST_CASE("a rank that was never there ends the job although another one's replacement is late too") {
  job test(3);
  test.join(0);
  test.join(1);
  test.lose(1);
  CHECK_THAT(only<end_job>(test.pass(10s, {0})).cause, ContainsSubstring("ranks 1, 2 of 3"));
}

TEST_CASE("time in which the agent itself was suspended is not taken from that to join") {
  job test(2);
  test.join(0);
  CHECK(test.pass(5s, {0}).empty());
  test.now += 1h;
  CHECK(test.state.tick(test.now).empty());
  CHECK(test.pass(4900ms, {0}).empty());
  CHECK_THAT(only<end_job>(test.pass(100ms, {0})).cause, ContainsSubstring("rank 1 of 2"));
}

TEST_CASE("processes that may not join as a rank are refused with the reason") {
  job test(2);
  CHECK_THAT(*test.state.refusal(2, 0), ContainsSubstring("rank 2 does not exist"));
  CHECK_THAT(*test.state.refusal(-1, 0), ContainsSubstring("rank -1 does not exist"));
  CHECK_FALSE(test.state.refusal(1, 0));
  test.join_all(2);
  CHECK_THAT(*test.state.refusal(1, 0), ContainsSubstring("taken by process 1001 on here"));
  CHECK_THROWS_AS(test.join(1), std::invalid_argument);
  test.lose(1);
  CHECK_THAT(*test.state.refusal(1, 0), ContainsSubstring("was lost and replaced"));
  CHECK_FALSE(test.state.refusal(1, 1));
  test.join(1, 1);
  test.acknowledge(0, 2);
  test.state.left(1, test.now);
  CHECK_THAT(*test.state.refusal(1, 1), ContainsSubstring("has finished"));
}

TEST_CASE("different numeric classes fail the job, and the message names both and the remedy") {
  job test(2);
  test.join(0);
  auto end = only<end_job>(test.state.joined(make_member(1, 0, "avx512_core"), test.now));
  CHECK_THAT(end.cause, ContainsSubstring("'avx2'") && ContainsSubstring("'avx512_core'") &&
                            ContainsSubstring("one version of Troupe"));
}

TEST_CASE("a process that ends with code 0 in the middle of the job fails it") {
  job test(2);
  test.join_all(2);
  CHECK(test.state.process_exited(1, test.now).empty());  // its leave may be on the way
  SECTION("once its connection has ended without a leave") {
    CHECK_THAT(only<end_job>(test.state.connection_lost(1, test.now)).cause,
               ContainsSubstring("without leaving"));
  }
  SECTION("or after silence") {
    CHECK_THAT(only<end_job>(test.pass(1500ms, {0})).cause, ContainsSubstring("without leaving"));
  }
  SECTION("but not if the leave arrives") {
    test.state.left(1, test.now);
    CHECK(test.state.connection_lost(1, test.now).empty());
    CHECK(test.pass(5s, {0}).empty());
  }
}

TEST_CASE("a process that ends with code 0 before it joined fails the job only if others wait for it") {
  job test(2);
  SECTION("others join later") {
    CHECK(test.state.process_exited(1, test.now).empty());
    CHECK_THAT(only<end_job>(test.join(0)).cause,
               ContainsSubstring("rank 1") && ContainsSubstring("without joining"));
  }
  SECTION("others have joined") {
    test.join(0);
    CHECK_THAT(only<end_job>(test.state.process_exited(1, test.now)).cause,
               ContainsSubstring("without joining"));
  }
  SECTION("no process joins") {
    CHECK(test.state.process_exited(0, test.now).empty());
    CHECK(test.state.process_exited(1, test.now).empty());
    CHECK(test.pass(60s, {}).empty());
  }
}

TEST_CASE("a recovery is reported with the times of its phases, which add up") {
  job test(2);
  test.join_all(2);
  auto died = test.now;
  auto detected = test.now += 2ms;
  test.now += 1ms;
  test.state.process_lost(1, "killed by SIGKILL", detected, died, test.now);
  test.now += 10ms;
  test.acknowledge(0, 2);
  test.now += 200ms;
  test.join(1, 1);
  test.now += 20ms;
  CHECK(test.state.phase_reached(2, recovery_phase::restored, test.now).empty());
  test.now += 5ms;
  CHECK(test.state.phase_reached(2, recovery_phase::rebuilt, test.now).empty());
  CHECK(test.state.phase_reached(1, recovery_phase::replayed, test.now).empty());  // stale
  test.now += 30ms;
  auto report = only<send_recovered>(test.state.phase_reached(2, recovery_phase::replayed, test.now)).report;
  using Catch::Matchers::WithinAbs;
  CHECK(report.generation == 2);
  CHECK(report.loss == member_loss{1, "killed by SIGKILL"});
  CHECK_THAT(report.detect_s, WithinAbs(0.002, 1e-9));
  CHECK_THAT(report.fence_s, WithinAbs(0.001, 1e-9));
  CHECK_THAT(report.quiesce_s, WithinAbs(0.010, 1e-9));
  CHECK_THAT(report.respawn_s, WithinAbs(0.200, 1e-9));
  CHECK_THAT(report.restore_s, WithinAbs(0.020, 1e-9));
  CHECK_THAT(report.rebuild_s, WithinAbs(0.005, 1e-9));
  CHECK_THAT(report.replay_s, WithinAbs(0.030, 1e-9));
  CHECK_THAT(report.total_s, WithinAbs(0.268, 1e-9));
  CHECK(test.state.phase_reached(2, recovery_phase::replayed, test.now).empty());
}

TEST_CASE("the time of a hang starts at the last heartbeat") {
  job test(2);
  test.join_all(2);
  test.pass(1500ms, {0});
  test.now += 100ms;
  test.lose(1);
  test.acknowledge(0, 2);
  test.join(1, 1);
  auto report = only<send_recovered>(test.state.phase_reached(2, recovery_phase::replayed, test.now)).report;
  CHECK_THAT(report.detect_s, Catch::Matchers::WithinAbs(1.0, 1e-9));
  CHECK_THAT(report.fence_s, Catch::Matchers::WithinAbs(0.6, 1e-9));
}

TEST_CASE("a failed job reports its failure once and ignores later events") {
  job test(2);
  test.join_all(2);
  CHECK(only<end_job>(test.state.failed("enough")).cause == "enough");
  CHECK(test.state.failed("again").empty());
  CHECK(test.lose(0).empty());
  CHECK(test.state.suspected(1, 0, "x", test.now).empty());
  CHECK(test.state.generation_requested(1, "x", test.now).empty());
  CHECK(test.pass(60s, {}).empty());
}

TEST_CASE("a job that is to stop tells its members, and again with each view, until its work is saved") {
  job test(2);
  test.join_all(2);
  CHECK(only<send_stop>(test.state.stop(15)).signal == 15);
  CHECK(test.state.stop(15).empty());
  test.lose(1);
  test.acknowledge(0, 2);
  auto outputs = test.join(1, 1);
  REQUIRE(outputs.size() == 2);
  CHECK(std::holds_alternative<send_view>(outputs[0]));
  CHECK(std::get<send_stop>(outputs[1]).signal == 15);
  CHECK(only<end_job>(test.state.stopped("at step 7")) == end_job{"at step 7", 15});
  CHECK(test.state.job_ended());
}

TEST_CASE("a stop before the job has begun ends it at once, and a stop after its end changes nothing") {
  job begun(2), done(2);
  begun.join(0);
  CHECK(only<end_job>(begun.state.stop(2)).signal == 2);
  done.join_all(2);
  done.state.left(0, done.now);
  CHECK(done.state.stop(15).empty());
}

TEST_CASE("a signal to one member stops a job only if its loss would end it, signals to all members always") {
  job launched(2), by_hand(2, false);
  launched.join_all(2);
  by_hand.join_all(2);
  CHECK(only<send_stop>(by_hand.state.stop_asked(1, 15)).signal == 15);
  CHECK(launched.state.stop_asked(1, 15).empty());
  CHECK(only<send_stop>(launched.state.stop_asked(0, 15)).signal == 15);
}

TEST_CASE("a signal to the members that have joined does not stop a job that waits for others to join") {
  job test(3);
  test.join(0);
  CHECK(test.state.stop_asked(0, 15).empty());
  CHECK(!test.state.job_ended());
  job asked(2);
  asked.join(0);
  asked.join(1);
  asked.lose(1);  // what it held may be with rank 0 alone
  CHECK(only<send_stop>(asked.state.stop_asked(0, 15)).signal == 15);
}

TEST_CASE("a signal that ended a member does not count for its replacement") {
  job test(2);
  test.join_all(2);
  test.state.stop_asked(1, 15);
  test.lose(1);
  test.acknowledge(0, 2);
  test.join(1, 1);
  CHECK(test.state.stop_asked(0, 15).empty());
}

TEST_CASE("a member that reports a failure has a limited time to end, and is then suspected") {
  job test(2);
  test.join_all(2);
  test.state.failing(1, test.now);
  CHECK(test.state.suspected(1, 0, "it does not answer", test.now).empty());
  CHECK(test.pass(4s, {0}).empty());
  CHECK(only<kill_process>(test.pass(1500ms, {0})).rank == 1);
}
