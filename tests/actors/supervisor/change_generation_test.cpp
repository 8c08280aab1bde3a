#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a fence stops the devices, then is acknowledged with the process's new address") {
  one_process here;
  here.begin();
  here.give(1, 0, 3);
  here.fence(2);
  CHECK(here.out.begun == numbers{2});
  REQUIRE(here.members.acknowledged.size() == 1);
  CHECK(here.members.acknowledged[0].first == 2);
  CHECK(here.members.acknowledged[0].second == recording_transport::address_of(1, 2));
  here.activations_come(1, 0);
  CHECK(here.model->calls == std::vector<std::string>{"N1"});
}

TEST_CASE("a process without a job acknowledges at once, also before its first view") {
  one_process here;
  here.fence(2);
  CHECK(here.members.acknowledged.size() == 1);
  here.view(2);
  here.enter(0, actors::job::call_kind::barrier);
  CHECK(here.sent<actors::messages::call_entered>().back().generation == 2);
}

TEST_CASE(
    "after a failure the process reports its copies and the interrupted step, and continues from its own "
    "copy") {
  one_process here;
  here.begin();
  here.train(3);
  here.give(1, 3, 5);  // step 3 begins, and its inputs do not come
  here.fence(2);
  here.view(2);
  auto entered = here.sent<actors::messages::call_entered>().back();
  CHECK(entered.generation == 2);
  CHECK(entered.interrupted_step == 4);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.parts ==
        std::vector<recovery::held_part>{{1, {1}, 1, own}, {2, {1}, 1, own}, {3, {1}, 1, own}});
  here.restore(2, own_plan(2));
  CHECK(here.sent<actors::messages::process_restored>().back().generation == 2);
  CHECK(here.sent<actors::messages::process_restored>().back().metrics.at(0).num_samples == 4);
  here.give(2, 2, 3);
  here.activations_come(2, 2);
  CHECK(here.steps_done(2) == numbers{2});
}

TEST_CASE("an old fence is ignored") {
  one_process here;
  here.begin();
  here.fence(3);
  here.fence(2);
  here.fence(3);
  CHECK(here.members.acknowledged.size() == 1);
}

TEST_CASE("an old view is ignored, and one that comes before the devices have stopped") {
  one_process here;
  here.begin();
  here.fence(3);
  here.view(2);
  CHECK(here.out.connected.size() == 1);
  here.view(3);
  CHECK(here.out.connected.size() == 2);
}

TEST_CASE("the age of the last snapshot is reported to the next generation and taken over from it") {
  one_process here;
  here.begin();
  here.advance(20s);
  here.fence(2);
  here.view(2);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.since_disk_s == 20);
  here.receive(2, {actors::actor::actor_role::supervisor, 1},
               actors::messages::restore_command{2, {}, 45, here.hosts});
  here.advance(5s);
  here.fence(3);
  here.view(3);
  CHECK(here.sent<actors::messages::copies_held>().back().inventory.since_disk_s == 50);
}

TEST_CASE("two fences in a row keep the interrupted step") {
  one_process here;
  here.begin();
  here.train(2);
  here.give(1, 2, 4);
  here.fence(2);
  here.fence(3);
  CHECK(here.members.acknowledged.back().first == 3);
  here.view(3);
  CHECK(here.sent<actors::messages::call_entered>().back().generation == 3);
  CHECK(here.sent<actors::messages::call_entered>().back().interrupted_step == 3);
}

namespace {

caf::scheduled_actor* device_with_a_job(one_process& here) {
  for (auto* job : here.actors.coordinator().jobs)
    if (auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
        actor && actor->name() == std::string("device"))
      return actor;
  return nullptr;
}

}  // namespace

TEST_CASE("a fence is acknowledged when all devices have stopped for it, not when one has stopped for two") {
  one_process here(1, 2, 4);
  here.devices_per_rank = 2;
  here.begin();
  auto& coordinator = here.actors.coordinator();
  for (std::uint64_t generation : {2, 3})
    caf::anon_send(here.supervisor, actors::messages::fence_raised{generation, {}});
  while (!device_with_a_job(here)) REQUIRE(coordinator.try_run_once());
  auto* slow = device_with_a_job(here);
  coordinator.run_jobs_filtered(
      [slow](caf::resumable* job) { return dynamic_cast<caf::scheduled_actor*>(job) != slow; });
  CHECK(here.members.acknowledged.empty());
  here.actors.run();
  REQUIRE(here.members.acknowledged.size() == 1);
  CHECK(here.members.acknowledged[0].first == 3);
}

TEST_CASE(
    "a second fence before the devices have stopped for the first is acknowledged once, for the second") {
  one_process here;
  here.begin();
  here.fenced->store(3);
  caf::anon_send(here.supervisor, actors::messages::fence_raised{2, {}});
  caf::anon_send(here.supervisor, actors::messages::fence_raised{3, {}});
  here.actors.run();
  REQUIRE(here.members.acknowledged.size() == 1);
  CHECK(here.members.acknowledged[0].first == 3);
}

TEST_CASE("the interrupted step is forgotten when its own recovery is done, not when an older one is") {
  for (std::uint64_t over : {1, 2}) {
    one_process here;
    here.begin();
    here.give(1, 0, 4);
    here.fence(2);
    here.view(2);
    CHECK(here.sent<actors::messages::call_entered>().back().interrupted_step == 1);
    here.restore(2);
    cluster::recovery_report report;
    report.generation = over;
    here.actors.send(here.supervisor, actors::messages::recovery_done{report});
    here.fence(3);
    here.view(3);
    CHECK(here.sent<actors::messages::call_entered>().back().interrupted_step == (over == 2 ? 0u : 1u));
  }
}

TEST_CASE("frames of the new generation that come before the view wait for it") {
  one_process here;
  here.begin();
  here.fence(2);
  here.restore(2);
  CHECK(here.sent<actors::messages::process_restored>().size() == 1);
  here.view(2);
  CHECK(here.sent<actors::messages::process_restored>().size() == 2);
}

namespace {

/// A process whose device computes on after a fence: it takes no messages.
struct computing_process : one_process {
  explicit computing_process(std::chrono::seconds limit) {
    watch_progress(limit);
    begin();
    fence_without_devices(2);
  }
  void fence_without_devices(std::uint64_t generation) {
    caf::anon_send(supervisor, actors::messages::fence_raised{generation, {}});
    run_others();
  }
  void wait(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      actors.coordinator().advance_time(1s);
      run_others();
    }
  }
  int num_warnings() const {
    int count = 0;
    auto text = logged();
    for (auto at = text.find("when device 1 ends its action"); at != std::string::npos;
         at = text.find("when device 1 ends its action", at + 1))
      ++count;
    return count;
  }

 private:
  void run_others() {
    actors.coordinator().run_jobs_filtered([](caf::resumable* job) {
      auto* actor = dynamic_cast<caf::scheduled_actor*>(job);
      return !actor || actor->name() != std::string("device");
    });
  }
};

}  // namespace

TEST_CASE("a device that does not stop within the limit of progress makes its process a suspect") {
  computing_process here(90s);
  here.wait(4);
  CHECK(here.num_warnings() == 0);
  here.wait(85);
  CHECK(here.num_warnings() == 1);
  CHECK(here.members.computing == std::vector<std::uint64_t>(89, 2));
  CHECK(here.members.suspects.empty());
  CHECK(here.members.acknowledged.empty());
  here.wait(2);
  REQUIRE(here.members.suspects.size() == 1);
  CHECK(here.members.suspects[0].first == 1);
  CHECK(here.members.suspects[0].second == "device 1 does not stop computing");
  CHECK(here.members.acknowledged.empty());
}

TEST_CASE("a device has half a minute to stop at least, and any time without a limit of progress") {
  computing_process brief(1s), endless(0s);
  brief.wait(29);
  CHECK(brief.members.suspects.empty());
  brief.wait(2);
  CHECK(brief.members.suspects.size() == 1);
  endless.wait(5000);
  CHECK(endless.members.suspects.empty());
  CHECK(endless.members.computing.size() == 5000);
}

TEST_CASE("a process goes on when the long action of its device has ended, and says nothing more of it") {
  computing_process here(90s);
  here.wait(60);
  CHECK(here.members.acknowledged.empty());
  here.actors.run();
  CHECK(here.members.acknowledged.size() == 1);
  here.wait(60);
  CHECK(here.members.computing.size() == 60);
  CHECK(here.members.suspects.empty());
}

TEST_CASE("a newer generation gives a device that computes its whole time again") {
  computing_process here(90s);
  here.wait(60);
  here.fence_without_devices(3);
  here.wait(60);
  CHECK(here.members.suspects.empty());
  CHECK(std::ranges::count(here.members.computing, 2U) == 60);
  CHECK(std::ranges::count(here.members.computing, 3U) == 60);
  here.actors.run();
  REQUIRE(here.members.acknowledged.size() == 1);
  CHECK(here.members.acknowledged[0].first == 3);
}

TEST_CASE("a peer that cannot be reached is reported while the generation runs, and not in a fence") {
  one_process here;
  here.actors.send(here.supervisor, actors::messages::peer_broken{0, 1, "connection reset"});
  CHECK(here.members.suspects.empty());
  here.begin();
  here.actors.send(here.supervisor, actors::messages::peer_broken{0, 1, "connection reset"});
  REQUIRE(here.members.suspects.size() == 1);
  CHECK(here.members.suspects[0] == std::pair(0, std::string("connection reset")));
  here.fence(2);
  here.actors.send(here.supervisor, actors::messages::peer_broken{0, 1, "connection reset"});
  CHECK(here.members.suspects.size() == 1);
}

TEST_CASE("an error of a generation before is not held against the process that has replaced the peer") {
  one_process here;
  here.begin();
  here.fence(2);
  here.view(2);
  here.actors.send(here.supervisor, actors::messages::peer_broken{0, 1, "connection refused"});
  CHECK(here.members.suspects.empty());
  here.actors.send(here.supervisor, actors::messages::peer_broken{0, 2, "connection refused"});
  CHECK(here.members.suspects.size() == 1);
}

TEST_CASE("at the end of a generation the log says which frames were dropped, once") {
  one_process here;
  here.begin();
  here.out.counters.bad_frames = 2;
  here.fence(2);
  CHECK(here.logged().find("frames dropped generation=1 bad_frames=2") != std::string::npos);
  here.view(2);
  here.receive(1, {actors::actor::actor_role::supervisor, 1},
               actors::messages::write_copies{1, 1});  // on its way since before the fence
  here.out.counters.bad_frames = 5;
  here.actors.send(here.supervisor, actors::job::job_done{});
  CHECK(here.logged().find("frames dropped generation=2 bad_frames=3 old_generation=1") != std::string::npos);
  auto said = here.logged();
  here.fence(3);
  CHECK(here.logged() == said);
}

TEST_CASE("frames that a failure leaves behind are no warning") {
  one_process here;
  here.begin();
  here.fence(2);
  here.view(2);
  here.receive(1, {actors::actor::actor_role::supervisor, 1}, actors::messages::write_copies{1, 1});
  here.fence(3);
  CHECK(here.logged().find("frames dropped") == std::string::npos);
}
