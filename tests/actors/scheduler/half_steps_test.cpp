// Steps in two calls, forward_backward and optimizer_step. The job has two devices, 0F0 0F1 0B0 0B1 0A and
// 1F0 1F1 1B0 1B1 1A.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "one_scheduler.hpp"
#include "support/drained.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::uint32_t first_update = 4;  // 0A, 1A

struct stepped_job : one_scheduler {
  explicit stepped_job(scheduler_settings given = {}) : one_scheduler(given) {}

  void reach(int device, std::uint64_t step, std::uint32_t call) {
    auto metrics = device == num_devices() - 1 ? metrics_of(step) : program::step_metrics{};
    actors.send(
        scheduler,
        actors::messages::cut_reached{
            with.generation, call, static_cast<std::uint32_t>(device), {step, first_update}, metrics});
  }
  void all_reach(std::uint64_t step, std::uint32_t call) {
    for (int device = 0; device < num_devices(); ++device) reach(device, step, call);
    all_seen(call);
  }
  /// Step `step` (from 0) as the calls `call` and `call` + 1.
  void make_step(std::uint64_t step, std::uint32_t call) {
    all_enter(forward_backward(call, step + 1));
    if (call == 0) all_restored();
    all_reach(step, call);
    all_enter(optimizer_step(call + 1, step + 1));
    all_done(step, call);
    all_seen(call + 1);
  }
  plan_position end(int device) const { return granted(device).end(); }
};

}  // namespace

TEST_CASE("forward_backward ends with the loss when all devices stand before the updates") {
  stepped_job here;
  here.all_enter(here.forward_backward(0, 1));
  here.all_restored();
  for (int device : {0, 1}) CHECK(here.end(device) == plan_position{0, first_update});
  here.reach(1, 0, 0);
  CHECK(here.finished(1).empty());
  here.reach(0, 0, 0);
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).kind == actors::job::call_kind::forward_backward);
  CHECK(here.result(1).metrics == one_scheduler::metrics_of(0));
  CHECK(here.result(1).steps_done == 0);
  CHECK(drained(*here.client).empty());
}

TEST_CASE("optimizer_step goes on with the same call of the devices, and waits for no copy of the state") {
  stepped_job here({.memory_every_steps = 3});
  here.all_enter(here.forward_backward(0, 1));
  here.all_restored();
  here.all_reach(0, 0);
  here.all_enter(here.optimizer_step(1, 1));
  CHECK(here.granted().call.index == 0);
  CHECK(here.granted().call.kind == actors::job::call_kind::train);
  CHECK(here.end(1) == plan_position{1, 0});
  CHECK(here.granted().copies.empty());
  here.done(0, 0);
  CHECK(here.finished(1).back() == 0);
  here.done(1, 0);
  CHECK(here.finished(1).back() == 1);
  CHECK(here.result(1).steps_done == 1);
  CHECK(here.result(1).metrics == one_scheduler::metrics_of(0));
  CHECK(here.result(1).replays_from == 0);
  here.all_seen(1);
  here.make_step(1, 2);
  CHECK(here.granted().copies.empty());
  here.make_step(2, 4);
  CHECK(steps_of(here.granted().copies) == numbers{3});
  here.all_held(3);
  here.make_step(3, 6);
  CHECK(here.granted().copies.empty());
  CHECK(here.result().replays_from == 3);
}

TEST_CASE("with a snapshot folder batches are needed until a snapshot is on disk") {
  stepped_job here({.on_disk = true, .disk_every_steps = 2});
  here.make_step(0, 0);
  here.all_held(1);
  here.make_step(1, 2);
  here.all_held(2);
  CHECK(here.result().replays_from == 0);
  here.all_written(2);
  here.make_step(2, 4);
  CHECK(here.result().replays_from == 2);
}

TEST_CASE("after steps in two calls fit waits for its last copy as ever") {
  stepped_job here({.memory_every_steps = 100});
  here.make_step(0, 0);
  here.all_enter(here.train(2, 3));
  CHECK(here.granted().end_step == 3);
  CHECK(steps_of(here.granted().copies) == numbers{3});
  here.all_done(1, 2);
  here.all_done(2, 2);
  CHECK(here.finished(1).back() == 1);
  here.all_held(3);
  CHECK(here.finished(1).back() == 2);
}

TEST_CASE("a generation that begins between the two calls does the whole step in the second one") {
  stepped_job here({.generation = 2});
  auto half = finished_training(0, 0);
  half.kind = actors::job::call_kind::forward_backward;
  here.all_enter(here.optimizer_step(1, 1), {half});
  here.all_restored();
  CHECK(here.granted().call.index == 1);
  CHECK(here.granted().first_step == 0);
  CHECK(here.end(0) == plan_position{1, 0});
  here.all_done(0, 1);
  CHECK(here.result(1).steps_done == 1);
  CHECK(here.result(1).metrics == one_scheduler::metrics_of(0));
}

TEST_CASE("steps in two calls are replayed before the call in which a process was lost") {
  stepped_job here({.generation = 2, .memory_every_steps = 10});
  std::vector<actors::job::call_result> known;
  for (std::uint32_t index = 0; index < 4; ++index) {
    known.push_back(finished_training(index, (index + 1) / 2, 3));
    known.back().kind =
        index % 2 == 0 ? actors::job::call_kind::forward_backward : actors::job::call_kind::optimizer_step;
  }
  for (int rank : {0, 1}) here.enter(rank, here.forward_backward(4, 3), {}, known, 3);
  here.all_restored();
  for (std::uint64_t step : {0, 1}) {
    CHECK(here.granted().call.source == 3);
    CHECK(here.end(1) == plan_position{step + 1, 0});
    CHECK(here.granted().copies.empty());
    here.all_done(step, 4);
  }
  CHECK(here.granted().call.source == 0);
  CHECK(here.end(1) == plan_position{2, first_update});
  CHECK(here.phases() == phases{cluster::recovery_phase::restored, cluster::recovery_phase::rebuilt});
  here.all_reach(2, 4);
  CHECK(here.result(1).steps_done == 2);
  CHECK(here.result(1).metrics == one_scheduler::metrics_of(2));
  CHECK(here.phases().back() == cluster::recovery_phase::replayed);
}

TEST_CASE("a resumed job returns at once from the calls of steps that its snapshot has") {
  stepped_job here({.generation = 2});
  for (int rank : {0, 1}) here.enter(rank, here.forward_backward(0, 1), {{4, {0}, 1, own}, {4, {1}, 1, own}});
  here.restored(0);
  here.restored(1, {3.5, 64, 3});
  CHECK(here.num_credits() == 0);
  CHECK(here.result(1).steps_done == 4);
  CHECK(here.result(1).metrics.loss_sum == 3.5);
  here.all_seen(0);
  here.all_enter(here.optimizer_step(1, 1));
  CHECK(here.num_credits() == 0);
  CHECK(here.result(1).steps_done == 4);
}

TEST_CASE("no call but a barrier may come between the two") {
  stepped_job here;
  here.all_enter(here.forward_backward(0, 1));
  here.all_restored();
  here.all_reach(0, 0);
  here.all_enter(here.barrier(1));
  CHECK(here.result(1).refused.empty());
  here.all_seen(1);
  here.all_enter(here.optimizer_step(2, 1));
  here.all_done(0, 0);
  CHECK(here.result(1).steps_done == 1);
  here.all_seen(2);
  here.all_enter(here.forward_backward(3, 2));
  here.all_reach(1, 3);
  here.all_enter(here.hash(4, 1));
  CHECK_THAT(here.result(1).refused, ContainsSubstring("between forward_backward and optimizer_step"));
}

TEST_CASE("a call that a process cannot take part in leaves no step open") {
  stepped_job here;
  auto request = here.forward_backward(0, 1);
  request.problem = "no targets";
  here.all_enter(request);
  CHECK(here.result(1).problem == "rank 0: no targets; rank 1: no targets");
  here.all_seen(0);
  here.all_enter(here.hash(1, 0));
  here.all_restored();
  CHECK(here.granted().call.kind == actors::job::call_kind::hash);
}

TEST_CASE("a pause between the two calls stands before the updates, and steps go no further than each call") {
  stepped_job here;
  here.all_enter(here.forward_backward(0, 1));
  here.all_restored();
  auto command = [&](actors::job::pause_command what, step_unit unit = step_unit::step) {
    auto told = here.supervisors[0].all<actors::messages::pause_changed>();
    auto version = told.empty() ? 0 : told.back().state.version;
    here.actors.send(here.scheduler,
                     actors::messages::pause_requested{1, 0, version, {version + 1, what, unit, 1}});
  };
  command(actors::job::pause_command::pause);
  command(actors::job::pause_command::step);
  CHECK(here.end(0) == plan_position{0, first_update});
  here.all_reach(0, 0);
  CHECK(here.finished(1).back() == 0);
  auto credits = here.num_credits();
  here.all_enter(here.optimizer_step(1, 1));
  CHECK(here.num_credits() == credits);
  auto state = here.supervisors[1].last<actors::messages::pause_changed>().state;
  CHECK(state.is_reached == 1);
  CHECK(state.call == 1);
  CHECK(state.stop == std::vector<plan_position>{{0, first_update}, {0, first_update}});
  command(actors::job::pause_command::step, step_unit::action);
  CHECK(here.end(0) == plan_position{1, 0});
  here.done(0, 0);
  CHECK(here.finished(1).back() == 0);
  command(actors::job::pause_command::resume);
  here.done(1, 0);
  CHECK(here.finished(1).back() == 1);
}

TEST_CASE("a stop within forward_backward does the whole step and saves it") {
  stepped_job here({.on_disk = true, .disk_interval = 1000s});
  here.make_step(0, 0);
  here.all_enter(here.forward_backward(2, 2));
  here.actors.send(here.scheduler, actors::messages::stop_job{15});
  CHECK(here.end(0) == plan_position{2, 0});
  CHECK(here.granted().copies.back().to_disk == 1);
  here.all_done(1, 2);
  here.all_held(2);
  here.all_written(2);
  REQUIRE(here.members.stops.size() == 1);
  CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 2, which is saved in "));
}

TEST_CASE("a stop between two calls has the next one save the state, and ends the job if none comes") {
  for (bool comes : {true, false}) {
    stepped_job here({.on_disk = true, .disk_interval = 1000s});
    here.make_step(0, 0);
    here.actors.send(here.scheduler, actors::messages::stop_job{15});
    CHECK(here.members.stops.empty());
    if (comes) {
      here.all_enter(here.forward_backward(2, 2));
      here.all_done(1, 2);
      here.all_held(2);
      here.all_written(2);
      REQUIRE(here.members.stops.size() == 1);
      CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 2, which is saved in "));
    } else {
      here.actors.advance(2s);
      REQUIRE(here.members.stops.size() == 1);
      CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 1"));
    }
  }
}

TEST_CASE("a stop while updates are granted ends the step, and the next call saves the state") {
  stepped_job here({.on_disk = true, .disk_interval = 1000s, .memory_every_steps = 100});
  here.make_step(0, 0);
  here.all_enter(here.forward_backward(2, 2));
  here.all_reach(1, 2);
  here.all_enter(here.optimizer_step(3, 2));
  here.actors.send(here.scheduler, actors::messages::stop_job{15});
  here.all_done(1, 2);
  CHECK(here.finished(1).back() == 3);
  here.all_seen(3);
  CHECK(here.members.stops.empty());
  here.all_enter(here.forward_backward(4, 3));
  CHECK(here.granted().copies.back().to_disk == 1);
  here.all_done(2, 4);
  here.all_held(3);
  here.all_written(3);
  REQUIRE(here.members.stops.size() == 1);
  CHECK_THAT(here.members.stops[0], ContainsSubstring("at step 3, which is saved in "));
}
