#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"
#include "troupe/messages/link.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("with its first view a process connects and reports which call it is in") {
  one_process here;
  here.define();
  here.enter(3);
  CHECK(here.out.frames.empty());
  here.view(1);
  REQUIRE(here.out.connected.size() == 1);
  CHECK(here.out.connected[0].first == 1);
  CHECK(here.out.connected[0].second.at(0) == recording_transport::address_of(0, 1));
  CHECK(here.out.connected[0].second.at(1) == recording_transport::address_of(1, 1));
  auto entered = here.sent<actors::messages::call_entered>();
  REQUIRE(entered.size() == 1);
  CHECK(entered[0].generation == 1);
  CHECK(entered[0].rank == 1);
  CHECK(entered[0].request.index == 3);
  REQUIRE(here.sent<actors::messages::copies_held>().size() == 1);
  CHECK(here.sent<actors::messages::copies_held>()[0].generation == 1);
  CHECK(here.sent<actors::messages::copies_held>()[0].inventory.rank == 1);
  CHECK(here.sent<actors::messages::copies_held>()[0].inventory.parts.empty());
  CHECK(here.out.frames[0].to_rank == 0);
}

TEST_CASE("a call that is entered after the view is announced at once, also without a job") {
  one_process here;
  here.view(1);
  here.enter(0, actors::job::call_kind::barrier);
  REQUIRE(here.sent<actors::messages::call_entered>().size() == 1);
  CHECK(here.sent<actors::messages::call_entered>()[0].request.kind == actors::job::call_kind::barrier);
}

TEST_CASE("no call leaves a timer behind, restored or not") {
  for (bool is_restored : {true, false}) {
    one_process here;
    here.define();
    here.view(1);
    here.enter(0);
    if (is_restored) here.restore(1);
    auto timers = here.actors.num_timers();
    for (std::uint32_t call = 0; call < 50; ++call) {
      here.finish(1, result_of(call));
      here.enter(call + 1);
    }
    CHECK(here.sent<actors::messages::call_entered>().size() == 51);
    CHECK(here.actors.num_timers() == timers);
  }
}

TEST_CASE("a process reports its copies once in each generation, before its first call") {
  one_process here;
  here.begin();
  here.train(2);
  here.finish(1, result_of(0));
  here.enter(1);
  here.fence(2);
  here.view(2);
  CHECK(here.sent<actors::messages::call_entered>().size() == 3);
  auto held = here.sent<actors::messages::copies_held>();
  REQUIRE(held.size() == 2);
  CHECK(held[0].inventory.parts.empty());
  CHECK_FALSE(held[1].inventory.parts.empty());
  auto last = here.out.frames.end();
  CHECK(
      actors::link::decode_message((last - 2)->body).content.match_elements<actors::messages::copies_held>());
  CHECK(actors::link::decode_message((last - 1)->body)
            .content.match_elements<actors::messages::call_entered>());
}

TEST_CASE("the job description goes to each generation's scheduler once, its hash with every call") {
  one_process here;
  here.define();
  here.enter(0);
  here.view(1);
  here.finish(1, result_of(0));
  here.enter(1);
  here.fence(2);
  here.view(2);
  auto entered = here.sent<actors::messages::call_entered>();
  REQUIRE(entered.size() == 3);
  for (const auto& each : entered) CHECK(each.description_hash != 0);
  CHECK(entered[0].description.hash() == entered[0].description_hash);
  CHECK(entered[1].description.fields().empty());
  CHECK(entered[2].description.hash() == entered[0].description_hash);
}

TEST_CASE(
    "the end of a call is delivered to the program and confirmed, and the next call has the next index") {
  one_process here;
  here.begin();
  here.finish(1, result_of(0));
  CHECK(here.results_told() == indices{0});
  auto told = actors::messages::call_finished{1, result_of(0)};
  here.request(1, {actors::actor::actor_role::supervisor, 1}, told);  // again: confirmed, told once
  CHECK(here.results_told().empty());
  CHECK(here.replies().back().match_elements<actors::messages::request_done>());
  here.enter(1);
  REQUIRE(here.sent<actors::messages::call_entered>().size() == 2);
  CHECK(here.sent<actors::messages::call_entered>()[1].num_completed == 1);
}

TEST_CASE("a process that has heard of the next generation does not confirm a result of the one before") {
  one_process here;
  here.begin();
  here.fence(2);
  here.request(1, {actors::actor::actor_role::supervisor, 1},
               actors::messages::call_finished{1, result_of(0)});
  CHECK(here.replies().empty());  // the link of generation 1 has ended
  auto late =
      ask<caf::unit_t>(here.actors, here.supervisor, actors::messages::call_finished{1, result_of(0)});
  CHECK(late.problem == "rank 1 is in generation 2");
  CHECK(here.results_told().empty());
}

TEST_CASE("a call that the program has left ends before the program's next call begins") {
  one_process here;
  here.begin();
  here.enter(1);
  CHECK(here.sent<actors::messages::call_entered>().size() == 1);
  here.fence(2);
  here.view(2);
  CHECK(here.sent<actors::messages::call_entered>().back().request.index == 0);
  here.finish(2, result_of(0));
  CHECK(here.sent<actors::messages::call_entered>().back().request.index == 1);
  here.finish(2, result_of(1));
  CHECK(here.results_told() == indices{0, 1});
}

TEST_CASE("the result of a call that the program is not in is not delivered") {
  one_process here;
  here.begin();
  here.finish(1, result_of(2));
  CHECK(here.results_told().empty());
}

TEST_CASE("a program that enters a finished call gets its result at once") {
  one_process here;
  here.define();
  here.view(2);
  here.enter(0);
  here.restore(2, {}, {result_of(0), result_of(1)});
  CHECK(here.results_told() == indices{0});
  auto frames = here.out.frames.size();
  here.enter(1);
  CHECK(here.results_told() == indices{1});
  CHECK(here.out.frames.size() == frames);
}

TEST_CASE("the end of a call that arrives after a fence is not delivered; the next generation delivers it") {
  one_process here;
  here.begin();
  here.fence(2);
  here.actors.send(here.supervisor, actors::messages::call_finished{1, result_of(0)});
  CHECK(here.results_told().empty());
  here.view(2);
  here.finish(2, result_of(0));
  CHECK(here.results_told() == indices{0});
}

TEST_CASE("a scheduler that lacks results of earlier calls gets them in pieces") {
  one_process here;
  here.begin();
  for (std::uint32_t index = 0; index < 300; ++index) here.finish(1, result_of(index));
  for (std::uint64_t first : {0, 256, 300})
    here.request(1, {actors::actor::actor_role::supervisor, 1}, actors::messages::want_results{first});
  std::vector<actors::messages::known_results> told;
  for (const auto& reply : here.replies()) told.push_back(reply.get_as<actors::messages::known_results>(0));
  REQUIRE(told.size() == 3);
  CHECK(told[0].results.size() == 256);
  CHECK(told[1].results.front() == result_of(256));
  CHECK(told[1].results.size() == 44);
  CHECK(told[2].results.empty());
}
