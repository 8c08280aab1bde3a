// A process's peer copy store or snapshot writer is restarted within the generation.
#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a call whose last state has lost its second copy is over when the peer has sent it again") {
  one_scheduler here({.window = 8});
  here.begin_training(1);
  here.all_done(0);
  here.held(0, 1, 0, own);
  here.held(1, 1, 0, peer);
  here.held(1, 1, 1, own);
  here.actors.send(here.scheduler, actors::messages::replicas_lost{1, 1});
  here.held(0, 1, 1, peer);
  CHECK(here.finished(1).empty());
  here.actors.send(here.scheduler, actors::messages::replicas_wanted{1, 1});
  CHECK(here.supervisors[0].last<actors::messages::replicate_copies>().generation == 1);
  CHECK(here.supervisors[1].all<actors::messages::replicate_copies>().empty());
  here.held(1, 1, 0, peer);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("what a process has lost before the restore is not chosen for it") {
  one_scheduler here({.generation = 2, .on_lost_state = actors::job::lost_state_policy::restart});
  here.enter(1, here.train(0, 10), {{5, {1}, 1, own}, {5, {0}, 1, peer}});
  here.actors.send(here.scheduler, actors::messages::replicas_lost{2, 1});
  here.enter(0, here.train(0, 10), {});
  CHECK(here.command().plan.from_scratch);
}

TEST_CASE("reports of other generations are dropped") {
  one_scheduler here({.generation = 3, .on_disk = true});
  here.begin_training(1);
  for (std::uint64_t other : {2, 4}) {
    here.actors.send(here.scheduler, actors::messages::replicas_lost{other, 0});
    here.actors.send(here.scheduler, actors::messages::replicas_wanted{other, 0});
    here.actors.send(here.scheduler, actors::messages::writes_lost{other, 0});
  }
  for (const auto& supervisor : here.supervisors) {
    CHECK(supervisor.all<actors::messages::replicate_copies>().empty());
    CHECK(supervisor.all<actors::messages::write_copies>().empty());
  }
}

TEST_CASE(
    "parts that were lost with a snapshot writer are written again, and the call ends with its snapshot") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.written(1, 0);
  here.actors.send(here.scheduler, actors::messages::writes_lost{1, 0});  // its part is written
  CHECK(here.supervisors[0].all<actors::messages::write_copies>().empty());
  here.actors.send(here.scheduler, actors::messages::writes_lost{1, 1});
  CHECK(here.supervisors[1].last<actors::messages::write_copies>().step == 1);
  CHECK(here.supervisors[0].all<actors::messages::write_copies>().empty());
  CHECK(here.finished(1).empty());
  here.written(1, 1);
  CHECK(here.disk->committed.size() == 1);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("a part that a process cannot write again ends its snapshot, not the training") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.written(1, 0);
  here.actors.send(here.scheduler, actors::messages::writes_lost{1, 1});
  here.written(1, 1, "stage 1 no longer holds the copy of step 1");
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.disk->committed.empty());
  CHECK(here.supervisors[1].last<actors::messages::snapshot_failed>().step == 1);
}

TEST_CASE("a manifest whose snapshot writer ended before it answered is written by the next one") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.disk->silent = true;
  here.begin_training(1);
  here.all_done(0);
  here.all_held(1);
  here.all_written(1);
  CHECK(here.disk->committed.size() == 1);
  here.written(1, 1);  // written twice
  CHECK(here.disk->committed.size() == 1);
  here.disk->silent = false;
  here.replace_snapshot_writer();
  REQUIRE(here.disk->committed.size() == 2);
  CHECK(here.disk->committed[1].step == 1);
  CHECK(here.finished(1) == numbers{0});
  here.replace_snapshot_writer();
  CHECK(here.disk->committed.size() == 2);
  CHECK(here.supervisors[1].all<actors::messages::snapshot_failed>().empty());
}

TEST_CASE("a search on disk whose snapshot writer ended is made by the next one") {
  one_scheduler here({.generation = 2, .on_disk = true, .resume = true});
  here.disk->fatal = true;
  here.all_enter(here.train(0, 40));
  CHECK(here.members.failures.empty());
  CHECK(here.num_commands() == 0);
  here.disk->fatal = false;
  here.replace_snapshot_writer();
  CHECK(here.num_commands() == 1);
  CHECK(here.disk->num_searches == 2);
}

TEST_CASE("the last finite state is written although its second copies were lost") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.begin_training(10);
  here.all_done(0);
  here.all_held(1);
  here.actors.send(here.scheduler, actors::messages::replicas_lost{1, 1});
  actors::messages::step_done found;
  found.generation = 1;
  found.step = 1;
  found.non_finite = "stage 0: the loss";
  here.actors.send(here.scheduler, found);
  for (const auto& supervisor : here.supervisors)
    CHECK(supervisor.last<actors::messages::write_copies>().step == 1);
}
