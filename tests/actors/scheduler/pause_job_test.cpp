// The job has two devices, 0F0 0F1 0B0 0B1 0A and 1F0 1F1 1B0 1B1 1A, and a window of 4 steps.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

struct paused_job : one_scheduler {
  explicit paused_job(scheduler_settings given = {}) : one_scheduler(given) {}

  void command(actors::job::pause_request request, int rank = 0) { command(request, rank, state().version); }
  void command(actors::job::pause_request request, int rank, std::uint64_t based_on) {
    request.id = ++num_commands_;
    actors.send(scheduler, actors::messages::pause_requested{with.generation, rank, based_on, request});
  }
  void pause() { command({0, actors::job::pause_command::pause}); }
  void resume() { command({0, actors::job::pause_command::resume}); }
  void step(step_unit unit, std::uint64_t count = 1) {
    command({0, actors::job::pause_command::step, unit, count});
  }
  void reach(int device, plan_position position, std::uint32_t call = 0) {
    actors.send(scheduler, actors::messages::cut_reached{
                               with.generation, call, static_cast<std::uint32_t>(device), position, {}});
  }
  /// What the newest message says.
  actors::job::pause_state state(int rank = 0) const {
    auto told = supervisors[static_cast<std::size_t>(rank)].all<actors::messages::pause_changed>();
    return told.empty() ? actors::job::pause_state{} : told.back().state;
  }
  plan_position end(int device) const { return granted(device).end(); }
  /// Waits, as supervisors report of a device while it makes no progress.
  void stands(int rank, schedule::device_activity activity, std::uint32_t action, std::uint64_t at_step,
              double for_s) {
    actors::messages::device_progress one{static_cast<std::uint32_t>(rank),
                                          {0, actors::job::call_kind::train, activity, at_step, action},
                                          for_s};
    actors.send(scheduler, actors::messages::process_progress{with.generation, rank, {one}, 0, 0});
  }
  void enter_knowing(int rank, const actors::job::call_request& request,
                     const actors::job::pause_state& pause, std::uint64_t interrupted = 0) {
    actors.send(scheduler,
                actors::messages::copies_held{with.generation,
                                              {rank, 0, {{3, {rank}, 1, own}, {3, {1 - rank}, 1, peer}}, 3}});
    actors::messages::call_entered entered{with.generation, rank, request, 0, interrupted};
    entered.pause = pause;
    actors.send(scheduler, entered);
  }

 private:
  std::uint64_t num_commands_ = 0;
};

void finish_steps(one_scheduler& here, std::uint64_t first, std::uint64_t end) {
  for (auto step = first; step < end; ++step) {
    here.all_done(step);
    here.all_held(step + 1);
  }
}

using positions = std::vector<plan_position>;

}  // namespace

TEST_CASE("a paused job ends what is granted, stands there and is granted steps again when it goes on") {
  paused_job here;
  here.begin_training(100);
  here.pause();
  for (int rank : {0, 1}) {
    CHECK(here.state(rank).is_paused == 1);
    CHECK(here.state(rank).is_reached == 0);
    CHECK(here.state(rank).version == 1);
    CHECK(here.state(rank).since_ms > 0);
    CHECK(here.state(rank).stop == positions{{4, 0}, {4, 0}});
  }
  finish_steps(here, 0, 3);
  here.done(0, 3);
  CHECK(here.state().is_reached == 0);
  here.done(1, 3);
  CHECK(here.state(1).is_reached == 1);
  here.all_held(4);
  CHECK(here.end(0) == plan_position{4, 0});
  auto since = here.state().since_ms;
  here.pause();
  CHECK(here.state().version == 2);
  CHECK(here.state().since_ms == since);
  here.resume();
  CHECK(here.state(1).is_paused == 0);
  CHECK(here.end(0) == plan_position{8, 0});
  finish_steps(here, 4, 100);
  here.all_seen(0);
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("single steps are granted as closed cuts, and the devices say when they stand there") {
  paused_job here;
  here.begin_training(100);
  here.pause();
  finish_steps(here, 0, 4);
  here.step(step_unit::step);
  CHECK(here.end(0) == plan_position{5, 0});
  CHECK(here.state().is_reached == 0);
  finish_steps(here, 4, 5);
  CHECK(here.state().is_reached == 1);

  here.step(step_unit::action);
  CHECK(here.end(0) == plan_position{5, 1});
  CHECK(here.end(1) == plan_position{5, 0});
  CHECK(here.state().is_reached == 0);
  here.reach(0, {5, 1});
  CHECK(here.state().is_reached == 1);

  here.step(step_unit::microbatch);
  CHECK(here.end(0) == plan_position{5, 3});
  CHECK(here.end(1) == plan_position{5, 3});
  here.reach(0, {5, 3});
  CHECK(here.state().is_reached == 0);
  here.reach(1, {5, 3});
  CHECK(here.state().is_reached == 1);

  here.step(step_unit::step);
  CHECK(here.end(0) == plan_position{6, 0});
  finish_steps(here, 5, 6);
  here.step(step_unit::action, 3);
  here.resume();
  CHECK(here.end(0) == plan_position{10, 0});
  finish_steps(here, 6, 100);
  here.all_seen(0);
  CHECK(here.result().steps_done == 100);
}

TEST_CASE("a step of a job that runs pauses it first") {
  paused_job here;
  here.begin_training(100);
  here.step(step_unit::action);
  CHECK(here.state().is_paused == 1);
  CHECK(here.state().stop == positions{{4, 1}, {4, 0}});
  CHECK(here.end(0) == plan_position{4, 1});
}

TEST_CASE(
    "copies of the state that are due in a step that one device ends before the others are granted once") {
  paused_job here;
  here.begin_training(100);
  here.pause();
  finish_steps(here, 0, 4);
  here.step(step_unit::microbatch, 2);
  here.step(step_unit::action);  // 0A
  CHECK(here.end(0) == plan_position{5, 0});
  CHECK(here.end(1) == plan_position{4, 4});
  CHECK(steps_of(here.granted(0).copies) == numbers{5});
  CHECK(steps_of(here.granted(1).copies) == numbers{5});
  here.step(step_unit::action);
  CHECK(here.end(1) == plan_position{5, 0});
  CHECK(here.granted(1).copies.empty());
}

TEST_CASE("single steps go no further than the end of the call, and the next call stands at its beginning") {
  paused_job here;
  here.begin_training(5);
  here.pause();
  finish_steps(here, 0, 4);
  here.step(step_unit::step, 1000);
  CHECK(here.end(0) == plan_position{5, 0});
  here.all_done(4);
  here.all_held(5);
  here.all_seen(0);
  CHECK(here.finished(0) == numbers{0});
  CHECK(here.state().is_reached == 1);
  auto credits = here.num_credits();
  here.all_enter(here.evaluate(1, 5, 3));
  CHECK(here.num_credits() == credits);
  CHECK(here.state().kind == actors::job::call_kind::evaluate);
  CHECK(here.state().is_reached == 1);
  here.step(step_unit::microbatch);
  CHECK(here.end(0) == plan_position{0, 1});
  here.resume();
  CHECK(here.end(0) == plan_position{3, 0});
}

TEST_CASE("a job may be paused before its first call, and a step then waits for that call") {
  paused_job here;
  here.pause();
  CHECK(here.supervisors[0].all<actors::messages::pause_changed>().empty());  // what others know is not known
  here.begin_training(10);
  CHECK(here.num_credits() == 0);
  CHECK(here.state().is_reached == 1);
  here.step(step_unit::step);
  CHECK(here.end(0) == plan_position{1, 0});
  paused_job other;
  other.command({0, actors::job::pause_command::step, step_unit::step, 2}, 1);
  other.begin_training(10);
  CHECK(other.end(0) == plan_position{2, 0});
  CHECK(other.state().is_paused == 1);
}

TEST_CASE("calls that run no plan are not paused") {
  paused_job here;
  here.begin_training(4);
  here.pause();
  finish_steps(here, 0, 4);
  here.all_seen(0);
  here.all_enter(here.hash(1, 4));
  CHECK(here.granted().call.kind == actors::job::call_kind::hash);
  here.all_enter(here.barrier(2));
}

TEST_CASE(
    "a request of a process that did not know the newest state is answered with it, to that process alone") {
  paused_job here;
  here.begin_training(100);
  here.pause();
  auto told = here.supervisors[0].all<actors::messages::pause_changed>().size();
  here.command({0, actors::job::pause_command::resume}, 1, 0);
  CHECK(here.state().is_paused == 1);
  CHECK(here.supervisors[0].all<actors::messages::pause_changed>().size() == told);
  CHECK(here.supervisors[1].all<actors::messages::pause_changed>().size() == told + 1);
  CHECK(here.state(1).version == 1);
}

TEST_CASE("requests of another generation are dropped") {
  paused_job here;
  here.begin_training(100);
  here.actors.send(here.scheduler,
                   actors::messages::pause_requested{0, 0, 0, {1, actors::job::pause_command::pause}});
  CHECK(here.state().version == 0);
}

TEST_CASE("a new scheduler learns of the pause from any process, and grants up to where the job stood") {
  paused_job here({.generation = 2});
  actors::job::pause_state known{7, 5, 1, 1, 1234, 0, actors::job::call_kind::train, {{5, 3}, {5, 2}}};
  actors::job::pause_state older{6, 4, 0};
  here.enter_knowing(0, here.train(0, 100), older, 5);
  here.enter_knowing(1, here.train(0, 100), known, 6);
  here.all_restored();
  CHECK(here.end(0) == plan_position{5, 3});
  CHECK(here.end(1) == plan_position{5, 2});
  CHECK(here.state().version == 7);
  CHECK(here.state().since_ms == 1234);
  CHECK(here.state().is_reached == 0);
  CHECK(here.phases() == phases{cluster::recovery_phase::restored, cluster::recovery_phase::rebuilt});
  here.all_done(3);
  here.all_done(4);
  here.reach(0, {5, 3});
  CHECK(here.state().is_reached == 0);
  here.reach(1, {5, 2});
  CHECK(here.state().is_reached == 1);
  // The interrupted step itself is done only when the job goes on.
  CHECK(here.phases().back() == cluster::recovery_phase::replayed);
}

TEST_CASE("a request that is known to have been carried out is not carried out twice") {
  paused_job here({.generation = 2});
  actors::job::pause_state known{7, 5, 1, 1, 1234, 0, actors::job::call_kind::train, {{5, 0}, {5, 0}}};
  here.actors.send(here.scheduler,
                   actors::messages::pause_requested{2, 0, 6, {5, actors::job::pause_command::step}});
  here.enter_knowing(0, here.train(0, 100), {6, 4, 1}, 5);
  here.enter_knowing(1, here.train(0, 100), known, 5);
  here.all_restored();
  CHECK(here.state().stop == positions{{5, 0}, {5, 0}});
  CHECK(here.state().version == 7);
}

TEST_CASE("no device of a paused job is taken for one that hangs, however long the pause is") {
  paused_job here({.progress_timeout = 60s});
  here.begin_training(100);
  here.pause();
  finish_steps(here, 0, 4);
  here.step(step_unit::action, 2);
  here.reach(0, {4, 1});
  here.reach(1, {4, 1});
  for (int i = 0; i < 10; ++i) {
    here.actors.advance(30s);
    here.stands(0, schedule::device_activity::idle, 1, 4, 1000);
    here.stands(1, schedule::device_activity::idle, 1, 4, 1000);
  }
  CHECK(here.logged().empty());
  CHECK(here.members.suspects.empty());
  CHECK(here.supervisors[0].all<actors::messages::restart_requested>().empty());
}

TEST_CASE("a device that does not return from an action of a single step is found") {
  paused_job here({.progress_timeout = 60s});
  here.begin_training(100);
  here.pause();
  finish_steps(here, 0, 4);
  here.step(step_unit::action, 2);
  here.stands(0, schedule::device_activity::idle, 1, 4, 100);
  here.stands(1, schedule::device_activity::computing, 0, 4, 100);
  REQUIRE(here.members.suspects.size() == 1);
  CHECK(here.members.suspects[0].first == 1);
}

TEST_CASE("a job that is to stop goes on to its end although it is paused") {
  paused_job here({.window = 4, .on_disk = true, .disk_interval = 1000s});
  here.begin_training(100);
  here.pause();
  finish_steps(here, 0, 4);
  here.step(step_unit::action, 5);  // within step 4
  auto within = here.end(0);
  CHECK(within.step == 4);
  here.actors.send(here.scheduler, actors::messages::stop_job{15});
  CHECK(here.end(0) == plan_position{5, 0});
  here.all_done(4);
  here.all_held(5);
  here.all_written(5);
  REQUIRE(here.members.stops.size() == 1);
  CHECK_THAT(here.members.stops[0], Catch::Matchers::ContainsSubstring("at step 5, which is saved in "));
}

TEST_CASE(
    "training that is cancelled while it is paused ends one step after what is granted, when it goes on") {
  paused_job here;
  here.begin_training(100);
  here.pause();
  finish_steps(here, 0, 4);
  here.step(step_unit::action);
  here.actors.send(here.scheduler, actors::messages::cancel_training{0});
  CHECK(here.end(0) == plan_position{4, 1});
  here.resume();
  CHECK(here.end(0) == plan_position{5, 0});
  CHECK(steps_of(here.granted().copies) == numbers{5});
}
