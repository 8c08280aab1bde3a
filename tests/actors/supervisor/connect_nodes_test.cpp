#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("the lowest rank runs a scheduler in each generation, and it reaches every rank") {
  one_process here(0);
  here.define();
  here.view(1);
  here.enter(0);
  actors::messages::call_entered other{1, 1, {0, actors::job::call_kind::train, 0, 10, 0, 0}, {}, 0};
  here.receive(1, {actors::actor::actor_role::scheduler, 0}, other);
  REQUIRE(here.sent<actors::messages::restore_command>().size() == 1);
  CHECK(here.out.frames[0].to_rank == 1);
  here.receive(1, {actors::actor::actor_role::scheduler, 0}, actors::messages::process_restored{1, 1, {}});
  REQUIRE(here.sent<actors::messages::step_credit>().size() == 1);  // for the other process's device
  CHECK(here.sent<actors::messages::step_credit>()[0].end_step > 0);
  CHECK(here.members.phases.size() == 3);

  here.fence(2);
  here.view(2);
  here.receive(1, {actors::actor::actor_role::scheduler, 0}, other);  // late
  CHECK(here.sent<actors::messages::restore_command>().size() == 1);
  other.generation = 2;
  here.receive(2, {actors::actor::actor_role::scheduler, 0}, other);
  REQUIRE(here.sent<actors::messages::restore_command>().size() == 2);
  CHECK(here.sent<actors::messages::restore_command>()[1].generation == 2);
}

TEST_CASE("a job that is defined after the view reaches the scheduler too") {
  one_process here(0);
  here.view(1);
  here.define();
  here.enter(0);
  here.receive(1, {actors::actor::actor_role::scheduler, 0},
               actors::messages::call_entered{1, 1, {0, actors::job::call_kind::train, 0, 10, 0, 0}, {}, 0});
  CHECK(here.sent<actors::messages::restore_command>().size() == 1);
}

TEST_CASE("another job replaces the previous one, with new children") {
  one_process here(1);
  here.begin();
  here.train(2);
  here.finish(1, result_of(0));
  auto next = std::make_shared<actors::job::job_definition>();
  here.model->num_stages = 2;
  next->make_program = fake_programs(here.model);
  next->place(make_plan({schedule_kind::gpipe, 2, 2, 2}), 2);
  next->number = 1;
  next->first_call = 1;
  here.actors.send(here.supervisor, actors::messages::define_job{next});
  here.enter(1);
  auto entered = here.sent<actors::messages::call_entered>().back();
  CHECK(entered.request.index == 1);
  CHECK(here.sent<actors::messages::copies_held>()
            .back()
            .inventory.parts.empty());  // nothing of the former job's state
  recovery::restore_plan scratch;
  scratch.from_scratch = true;
  here.restore(1, scratch);
  CHECK(here.sent<actors::messages::process_restored>().size() == 2);
  // A part of the former job comes late: it is no replica of this one's.
  here.part_arrives(1, 2, 0, packed_with(1, 2, 0));
  here.enter(2);
  here.finish(1, result_of(1));
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.parts.empty());
  CHECK(here.members.failures.empty());
}
