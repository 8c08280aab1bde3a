#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("a process starts from scratch, computes the first step and sends a copy to its peer") {
  one_process here;
  here.begin();
  auto restored = here.sent<actors::messages::process_restored>();
  REQUIRE(restored.size() == 1);
  CHECK(restored[0].generation == 1);
  CHECK(restored[0].rank == 1);
  here.train(1);
  CHECK(here.model->calls ==
        std::vector<std::string>{"N1", "F1.0", "F1.1", "I1.0", "W1.0", "I1.1", "W1.1", "A1@0"});
  CHECK(here.steps_done(1) == numbers{0});
  CHECK(here.last_part().to_rank == 0);
  CHECK(here.last_part().tag == transport::tensor_tag{1, 1, 0, 1, 0, transport::tensor_role::snapshot_part});
  CHECK(here.sent<actors::messages::part_held>().back().part == recovery::held_part{1, {1}, 1, own});
}

TEST_CASE("a fence during a restore starts the restore again") {
  one_process here;
  here.begin();
  here.train(2);
  here.fence(2);
  here.view(2);
  here.restore(2, plan_of(2, from(0, 0, own), from(1, 0, peer)));  // the peer's copy is still to come
  here.fence(3);
  CHECK(here.members.acknowledged.back().first == 3);
  here.view(3);
  here.part_arrives(2, 2, 1, packed_with(7, 2));  // of the generation that is over
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 1);
  here.restore(3, own_plan(1));
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 3);
  here.give(3, 1, 2);
  here.activations_come(3, 1);
  CHECK(here.steps_done(3) == numbers{1});
}

TEST_CASE("a restore command of another generation, or while a fence is up, is ignored") {
  one_process here;
  here.begin();
  here.actors.send(here.supervisor, actors::messages::restore_command{2, {}, 0, {}});
  here.fence(2);
  here.actors.send(here.supervisor, actors::messages::restore_command{2, {}, 0, {}});
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
}

TEST_CASE("a state from a peer may come after the command to restore it") {
  one_process here;
  here.define();
  here.view(2);
  here.enter(0);
  here.restore(2, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<actors::messages::process_restored>().empty());
  here.part_arrives(2, 4, 1, packed_with(7, 4));
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
  here.give(2, 4, 5);
  here.activations_come(2, 4);
  CHECK(here.steps_done(2) == numbers{4});
}

TEST_CASE("a state from a peer may come before the command to restore it") {
  one_process here;
  here.define();
  here.view(2);
  here.enter(0);
  here.part_arrives(2, 4, 1, packed_with(7, 4));
  CHECK(here.sent<actors::messages::process_restored>().empty());
  here.restore(2, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
}

TEST_CASE("a state from a peer may come before the view") {
  one_process here;
  here.define();
  here.view(1);
  here.enter(0);
  here.fence(2);
  here.part_arrives(2, 4, 1, packed_with(7, 4));
  here.view(2);
  here.restore(2, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
}

TEST_CASE("a state from an older generation is not used") {
  one_process here;
  here.define();
  here.view(2);
  here.enter(0);
  here.part_arrives(2, 4, 1, packed_with(7, 4));
  here.fence(3);
  here.view(3);
  here.restore(3, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<actors::messages::process_restored>().empty());
  here.part_arrives(3, 4, 1, packed_with(8, 4));
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
}

TEST_CASE("a state from an older generation does not replace a newer one") {
  one_process here;
  here.define();
  here.view(3);
  here.enter(0);
  here.part_arrives(3, 4, 1, packed_with(8, 4));
  here.part_arrives(2, 4, 1, packed_with(7, 4));
  here.restore(3, plan_of(4, from(0, 0, own), from(1, 0, peer)));
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
}

TEST_CASE("a state from an older generation is not used although the state of another stage arrives again") {
  one_process here(1, 2, 4);
  here.define();
  here.view(2);
  here.enter(0);
  here.part_arrives(2, 4, 2, packed_with(7, 4, 2));
  here.fence(3);
  here.view(3);
  here.part_arrives(3, 4, 3, packed_with(7, 4, 3));
  here.restore(3, {4, false, {from(0, 0, own), from(1, 0, own), from(2, 0, peer), from(3, 0, peer)}});
  CHECK(here.sent<actors::messages::process_restored>().empty());
  here.part_arrives(3, 4, 2, packed_with(8, 4, 2));
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
}

TEST_CASE("a replica is announced, and sent to the host of the stage that was lost") {
  one_process here;
  here.begin();
  here.train(1);
  here.part_arrives(1, 1, 0, packed_with(7, 1, 0));  // the other process's stage
  CHECK(here.sent<actors::messages::part_held>().back().part == recovery::held_part{1, {0}, 1, peer});
  here.fence(2);
  here.view(2);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.parts ==
        std::vector<recovery::held_part>{{1, {1}, 1, own}, {1, {0}, 1, peer}});
  here.restore(2, plan_of(1, from(0, 1, peer), from(1, 1, own)));
  bool found = false;
  for (const auto& sent : here.out.tensors) {
    if (sent.tag != transport::tensor_tag{2, 1, 0, 0, 0, transport::tensor_role::restored_state}) continue;
    found = true;
    CHECK(sent.to_rank == 0);
    CHECK(wire::unpack_state(sent.value)[0].value.values<float>()[0] == 7);
  }
  CHECK(found);
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);
}

TEST_CASE("a restore command for a missing copy fails the job") {
  one_process here;
  here.begin();
  here.restore(1, own_plan(9));
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("stage 1 holds no copy of step 9") != std::string::npos);
}

TEST_CASE("a restore command for a missing replica or snapshot fails the job") {
  one_process here;
  here.begin();
  here.restore(1, plan_of(9, from(0, 1, peer), from(1, 0, peer)));
  REQUIRE(here.members.failures.size() == 1);
  CHECK(here.members.failures[0].find("no replica of stage 0 at step 9") != std::string::npos);
  here.restore(
      1, plan_of(9, from(0, 0, recovery::part_location::disk), from(1, 1, recovery::part_location::disk)));
  REQUIRE(here.members.failures.size() == 2);
  CHECK(here.members.failures[1].find("snapshot") != std::string::npos);
}
