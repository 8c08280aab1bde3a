// A process hosts the devices that a restore command gives it, in each generation others if need be.
#include <caf/actor_registry.hpp>
#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

mesh::hosting on_ranks(const std::vector<int>& ranks) {
  std::vector<world_rank> members;
  for (auto rank : ranks) members.push_back({rank});
  return mesh::hosting(members);
}

/// The last state that went to a stage's new host; none: rank -1.
recording_transport::sent_tensor last_state(const one_process& here) {
  recording_transport::sent_tensor found;
  found.to_rank = -1;
  for (const auto& sent : here.out.tensors)
    if (sent.tag.role == transport::tensor_role::restored_state) found = sent;
  return found;
}

std::vector<recovery::held_part> inventory_in(one_process& here, std::uint64_t generation) {
  here.fence(generation);
  here.view(generation);
  return here.sent<actors::messages::copies_held>().back().inventory.parts;
}

}  // namespace

TEST_CASE("a loader runs where a stage takes samples or computes the loss, and only there") {
  // The actors of rank 1 after it was given devices of three with a stage each, in one generation after the
  // other.
  auto num_actors = [](const std::vector<std::vector<int>>& hosts) {
    one_process here(1, 2, 3);
    here.devices_per_rank = 2;
    here.define();
    here.view(1);
    here.enter(0);
    for (std::uint64_t generation = 1; generation <= hosts.size(); ++generation) {
      if (generation > 1) {
        here.fence(generation);
        here.view(generation);
      }
      here.hosts = on_ranks(hosts[generation - 1]);
      here.restore(generation);
    }
    CHECK(here.sent<actors::messages::process_restored>().size() == hosts.size());
    return here.actors.system().registry().running();
  };
  auto in_the_middle = num_actors({{0, 1, 0}});
  CHECK(num_actors({{1, 0, 0}}) == in_the_middle + 1);
  CHECK(num_actors({{0, 0, 1}}) == in_the_middle + 1);
  CHECK(num_actors({{0, 1, 0}, {1, 0, 0}}) == in_the_middle + 1);
  CHECK(num_actors({{1, 0, 0}, {0, 1, 0}}) == in_the_middle);
}

TEST_CASE("a process without a device takes part: it enters calls, is restored, and acknowledges fences") {
  one_process here;
  here.define();
  here.view(1);
  here.enter(0);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.parts.empty());
  here.hosts = on_ranks({0, 0});
  here.restore(1);
  CHECK(here.sent<actors::messages::process_restored>().back().rank == 1);
  CHECK(here.model->calls.empty());
  here.fence(2);
  CHECK(here.members.acknowledged.back().first == 2);
  here.view(2);
  here.restore(2, plan_of(4, from(0, 0, own), from(1, 0, own)));
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);
  here.finish(2, result_of(0));
  CHECK(here.results_told() == indices{0});
}

TEST_CASE("a process without a device keeps copies, and drops those older than the committed step") {
  one_process here;
  here.define();
  here.view(1);
  here.enter(0);
  here.hosts = on_ranks({0, 0});
  here.restore(1);
  for (std::uint64_t step : {1, 2, 3}) here.part_arrives(1, step, 0, packed_with(7, step, 0));
  CHECK(here.sent<actors::messages::part_held>().back().part == recovery::held_part{3, {0}, 1, peer});
  here.receive(1, {actors::actor::actor_role::supervisor, 1}, actors::messages::copies_committed{1, 2});
  here.receive(1, {actors::actor::actor_role::supervisor, 1},
               actors::messages::copies_committed{9, 3});  // of another generation
  CHECK(inventory_in(here, 2) == std::vector<recovery::held_part>{{2, {0}, 1, peer}, {3, {0}, 1, peer}});
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.committed_step == 2);
}

TEST_CASE("a process with all devices runs each on its own") {
  one_process here;
  here.define();
  here.view(1);
  here.enter(0);
  here.hosts = on_ranks({1, 1});
  here.restore(1);
  CHECK(here.model->calls == std::vector<std::string>{"N0", "N1"});
  for (std::uint32_t device : {0, 1})
    here.receive(
        1, {actors::actor::actor_role::device, device},
        actors::messages::step_credit{1, {0, actors::job::call_kind::train, 0, 100, 0, 0}, 0, 1, {}, 0});
  here.advance(std::chrono::milliseconds(1));
  // The activations of stage 0 go over the transport to this same rank.
  CHECK(here.out.tensors.size() == 2);
  for (const auto& sent : here.out.tensors) CHECK(sent.to_rank == 1);
}

TEST_CASE("a survivor takes over a stage whose copy it has kept, from its own memory") {
  one_process here;
  here.begin();
  here.train(1);
  here.part_arrives(1, 1, 0, packed_with(7, 1, 0));
  here.fence(2);
  here.view(2);
  here.hosts = on_ranks({1, 1});
  here.model->calls.clear();
  here.restore(2, plan_of(1, from(0, 1, peer), from(1, 1, own)));
  CHECK(here.model->calls == std::vector<std::string>{"D1", "L1", "N0", "D0", "L0"});
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);
  // Its keeper gets a copy of the stage that has come.
  CHECK(here.last_part().tag.stage == 0);
  CHECK(here.last_part().to_rank == 0);
  CHECK(wire::unpack_state(here.last_part().value)[0].value.values<float>()[0] == 7);
}

TEST_CASE("a stage that moves away is sent from where it was, and kept there until its new host's is safe") {
  one_process here;
  here.begin();
  here.train(2);
  here.fence(2);
  here.view(2);
  here.hosts = on_ranks({0, 0});
  here.restore(2, plan_of(1, from(0, 0, own), from(1, 1, own)));
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);  // it hosts nothing any more
  auto sent = last_state(here);
  CHECK(sent.to_rank == 0);
  CHECK(sent.tag == transport::tensor_tag{2, 1, 0, 1, 0, transport::tensor_role::restored_state});
  // A failure before: the copy is still here, and that of the step rolled back is not.
  CHECK(inventory_in(here, 3) == std::vector<recovery::held_part>{{1, {1}, 1, own}});
  here.restore(3, plan_of(1, from(0, 0, own), from(1, 1, own)));
  here.receive(3, {actors::actor::actor_role::supervisor, 1}, actors::messages::copies_committed{3, 1});
  CHECK(inventory_in(here, 4) == std::vector<recovery::held_part>{{1, {1}, 1, own}});
  here.restore(4, plan_of(1, from(0, 0, own), from(1, 1, own)));
  here.receive(4, {actors::actor::actor_role::supervisor, 1}, actors::messages::copies_committed{4, 2});
  CHECK(inventory_in(here, 5).empty());
  CHECK(here.members.failures.empty());
  CHECK(here.members.requests.empty());
}

TEST_CASE("a stage that comes back before its copy was dropped is restored from it") {
  one_process here;
  here.begin();
  here.train(2);
  here.fence(2);
  here.view(2);
  here.hosts = on_ranks({0, 0});
  here.restore(2, plan_of(1, from(0, 0, own), from(1, 1, own)));
  here.fence(3);
  here.view(3);
  here.hosts = on_ranks({0, 1});
  here.model->calls.clear();
  here.restore(3, own_plan(1));
  CHECK(here.model->calls == std::vector<std::string>{"N1", "D1", "L1"});
  here.give(3, 1, 2);
  here.activations_come(3, 1);
  CHECK(here.steps_done(3) == numbers{1});
}

TEST_CASE("a state that comes before the command that makes this process its stage's host is used") {
  one_process here;
  here.begin();
  here.train(1);
  here.fence(2);
  here.view(2);
  here.hosts = on_ranks({1, 1});
  here.part_arrives(2, 1, 0, packed_with(7, 1, 0));
  here.restore(2, plan_of(1, from(0, 0, own), from(1, 1, own)));
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);
}

TEST_CASE("the scheduler grants steps to the devices of this generation, wherever they are") {
  one_process here(0);
  here.define();
  // As if the job had begun with both devices on the other process.
  here.job->home = on_ranks({1, 1});
  here.view(1);
  here.enter(0);
  here.receive(1, {actors::actor::actor_role::scheduler, 0}, actors::messages::copies_held{1, {1, 0, {}}});
  here.receive(1, {actors::actor::actor_role::scheduler, 0},
               actors::messages::call_entered{1, 1, {0, actors::job::call_kind::train, 0, 10, 0, 0}, {}, 0});
  REQUIRE(here.sent<actors::messages::restore_command>().size() == 1);
  CHECK(here.sent<actors::messages::restore_command>()[0].hosts ==
        on_ranks({1, 0}));  // no more than its share
  here.receive(1, {actors::actor::actor_role::scheduler, 0}, actors::messages::process_restored{1, 1, {}});
  CHECK(here.sent<actors::messages::step_credit>().size() == 1);
}

TEST_CASE("a process reports where the devices were in the newest generation that it was to restore") {
  one_process here;
  here.define();
  here.view(1);
  here.enter(0);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.before == recovery::past_hosting{});
  here.hosts = on_ranks({1, 0});
  here.restore(1, {});
  here.fence(2);
  here.view(2);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.before ==
        recovery::past_hosting{1, on_ranks({1, 0})});
}
