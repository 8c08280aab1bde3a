#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"
#include "support/drained.hpp"
#include "troupe/snapshot/weights_hash.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("steps are granted by a window that moves half a window at a time") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  CHECK(here.granted(1).end_step == 4);
  here.all_done(0);
  CHECK(here.num_credits() == 1);
  here.all_done(1);
  CHECK(here.num_credits() == 2);
  CHECK(here.granted(0).end_step == 6);
  CHECK(here.granted(1).end_step == 6);
}

TEST_CASE("the window follows the slowest device") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  for (std::uint64_t step = 0; step < 4; ++step) here.done(0, step);
  CHECK(here.num_credits() == 1);
}

TEST_CASE("the credit ends with the call") {
  one_scheduler here({.window = 4});
  here.begin_training(5);
  here.all_done(0);
  CHECK(here.granted().end_step == 5);  // no half window left
  CHECK(here.num_credits() == 2);
}

TEST_CASE("a credit names the committed step: the newest of which two processes hold every stage") {
  one_scheduler here({.window = 2});
  here.begin_training(100);
  here.all_done(0);
  here.held(0, 1, 0, own);
  here.held(1, 1, 0, peer);
  here.held(1, 1, 1, own);
  here.all_done(1);
  CHECK(here.granted().committed_step == 0);
  here.held(0, 1, 1, peer);
  here.all_done(2);
  CHECK(here.granted().committed_step == 1);
}

TEST_CASE(
    "no steps are granted while too many copies are uncommitted, and granting continues when they are "
    "committed") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  for (std::uint64_t step = 0; step < 20; ++step) here.all_done(step);
  auto stopped_at = here.granted().end_step;
  CHECK(stopped_at < 20);
  here.all_held(stopped_at);
  CHECK(here.granted().end_step > stopped_at);
}

TEST_CASE("each step is reported to the program and the agent with its metrics") {
  one_scheduler here;
  here.begin_training(10);
  here.all_done(0);
  here.all_done(1);
  auto events = drained(*here.client);
  REQUIRE(events.size() == 2);
  auto second = std::get<actors::job::step_progress>(events[1]);
  CHECK(second.step == 2);
  CHECK(second.target_step == 10);
  CHECK(second.metrics == one_scheduler::metrics_of(1));
  REQUIRE(here.members.progress_reports.size() == 2);
  CHECK(here.members.progress_reports[1] == cluster::job_progress{1, 2, 10, 1.5 / 64});
}

TEST_CASE("the program hears which state is safe when a step after it is done") {
  one_scheduler here;
  here.begin_training(10);
  here.all_done(0);
  here.all_held(1);
  here.all_done(1);
  auto events = drained(*here.client);
  REQUIRE(events.size() == 2);
  CHECK(std::get<actors::job::step_progress>(events[0]).replays_from == 0);
  CHECK(std::get<actors::job::step_progress>(events[1]).replays_from == 1);
}

TEST_CASE("training ends when its last state is committed") {
  one_scheduler here({.window = 8});
  here.begin_training(2);
  here.all_done(0);
  here.all_done(1);
  CHECK(here.finished(1).empty());
  here.held(0, 2, 0, own);
  here.held(1, 2, 0, peer);
  here.held(1, 2, 1, own);
  CHECK(here.finished(1).empty());
  here.held(0, 2, 1, peer);
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).steps_done == 2);
  CHECK(here.result(1).metrics == one_scheduler::metrics_of(1));
  CHECK(here.result(1).kind == actors::job::call_kind::train);
}

TEST_CASE("a copy may arrive before the report of its step") {
  one_scheduler here({.window = 8});
  here.begin_training(1);
  here.all_held(1);
  CHECK(here.finished(1).empty());
  here.all_done(0);
  CHECK(here.finished(1) == numbers{0});
}

TEST_CASE("in a world of one process a single copy commits a step") {
  one_scheduler here({.world_size = 1});
  here.begin_training(1);
  here.all_done(0);
  CHECK(here.finished(0).empty());
  here.held(0, 1, 0, own);
  CHECK(here.finished(0) == numbers{0});
}

TEST_CASE("a call whose steps are all done ends with the metrics of the last one") {
  one_scheduler here({.generation = 2});
  here.enter(0, here.train(0, 4), {{4, {0}, 1, own}});
  here.enter(1, here.train(0, 4), {{4, {1}, 1, own}});
  here.restored(0);
  here.restored(1, {3.5, 64, 3});
  CHECK(here.num_credits() == 0);
  CHECK(here.result(1).metrics == program::step_metrics{3.5, 64, 3});
  CHECK(here.result(1).steps_done == 4);
}

TEST_CASE("steps of earlier calls are repeated with their samples before the call continues with its own") {
  one_scheduler here({.generation = 2, .window = 8});
  here.all_enter(here.train(2, 6, 5), {finished_training(0, 2, 3), finished_training(1, 4, 4)});
  CHECK(here.command().plan.from_scratch);
  here.all_restored();
  CHECK(here.granted().call.source == 3);
  CHECK(here.granted().first_step == 0);
  CHECK(here.granted().end_step == 2);
  here.train_to_end(0, 2, 2);
  CHECK(here.granted().call.source == 4);
  CHECK(here.granted().first_step == 2);
  CHECK(here.granted().end_step == 4);
  here.train_to_end(2, 4, 2);
  CHECK(here.granted().call.source == 5);
  CHECK(here.granted().end_step == 6);
  here.train_to_end(4, 6, 2);
  CHECK(here.finished(0) == numbers{2});
  CHECK(here.result().metrics == one_scheduler::metrics_of(5));
}

TEST_CASE("evaluation sums the metrics of all its batches, and grants no copies") {
  one_scheduler here({.window = 8});
  here.all_enter(here.evaluate(0, 0, 2));
  here.all_restored();
  CHECK(here.granted().call.kind == actors::job::call_kind::evaluate);
  CHECK(here.granted().call.source == 1);
  CHECK(here.granted().end_step == 2);
  CHECK(here.granted().copies.empty());
  here.all_done(0);
  CHECK(here.finished(1).empty());
  here.all_done(1);
  CHECK(here.result(1).metrics == program::step_metrics{0.5 + 1.5, 128, 6});
  CHECK(drained(*here.client).empty());
}

TEST_CASE("replicas share the batches of an evaluation, whose metrics are added up batch by batch") {
  one_scheduler here({.world_size = 2, .window = 8, .num_replicas = 2});
  here.all_enter(here.evaluate(0, 0, 3));
  here.all_restored();
  CHECK(here.granted().end_step == 2);
  // (1e16 + 1) + 1 is not 1e16 + (1 + 1).
  for (const auto& [step, loss_of_device] :
       std::vector<std::pair<std::uint64_t, std::vector<double>>>{{0, {1e16, 0}}, {1, {1, 1}}})
    for (int device : {1, 0}) {
      actors::messages::step_done done;
      done.generation = 1;
      done.device = static_cast<std::uint32_t>(device);
      done.step = step;
      done.metrics.loss_sum = loss_of_device[static_cast<std::size_t>(device)];
      here.actors.send(here.scheduler, done);
    }
  CHECK(here.result(1).metrics.loss_sum == (1e16 + 1) + 1);
}

TEST_CASE("an evaluation of nothing ends at once") {
  one_scheduler here;
  here.all_enter(here.evaluate(0, 0, 0));
  here.all_restored();
  CHECK(here.finished(1) == numbers{0});
  CHECK(here.result(1).metrics == program::step_metrics{});
}

TEST_CASE("training steps repeated during an evaluation are not part of its result") {
  one_scheduler here({.generation = 2, .window = 8});
  here.all_enter(here.evaluate(1, 2, 1), {finished_training(0, 2)});
  here.all_restored();
  CHECK(here.granted().call.kind == actors::job::call_kind::train);
  here.all_done(0, 1);
  here.all_done(1, 1);
  here.all_held(2);
  CHECK(here.granted().call.kind == actors::job::call_kind::evaluate);
  here.all_done(0, 1);
  CHECK(here.result(1).metrics == one_scheduler::metrics_of(0));
  CHECK(here.result(1).steps_done == 2);
  CHECK(here.result(1).timing == actors::job::step_timing{});
  CHECK(here.result(1).last_step.empty());
}

TEST_CASE("the hash covers the parameters of all stages, whatever the order of arrival") {
  one_scheduler here({.world_size = 2});
  here.all_enter(here.hash(0, 0));
  here.all_restored();
  CHECK(here.granted().call.kind == actors::job::call_kind::hash);
  named_tensor first{"a", tensor::full({3}, 1)}, second{"b", tensor::full({2}, 2)},
      third{"c", tensor::full({4}, 3)}, fourth{"d", tensor::full({1}, 4)};
  auto lists = [&](std::uint64_t generation, std::uint32_t call, std::uint32_t stage,
                   const std::vector<std::string>& names) {
    here.actors.send(here.scheduler,
                     actors::messages::parameters_listed{
                         generation, call, stage, 0, names, std::vector<std::int64_t>(names.size()), {}});
  };
  auto asked = [&](std::size_t device) {
    return here.devices[device].all<actors::messages::hash_parameters>();
  };
  auto hashed = [&](std::size_t device, const std::vector<named_tensor>& those,
                    std::uint64_t generation = 1) {
    auto turn = here.devices[device].last<actors::messages::hash_parameters>();
    snapshot::weights_hasher hasher(turn.state);
    for (const auto& each : those) hasher.add(each.value);
    here.actors.send(here.scheduler, actors::messages::parameters_hashed{
                                         generation, 0, turn.num_hashed + those.size(), hasher.state()});
  };
  lists(1, 0, 1, {"c", "a"});
  lists(2, 0, 0, {"d", "b"});  // of another generation
  lists(1, 1, 0, {"d", "b"});  // for another call
  CHECK(asked(1).empty());
  lists(1, 0, 0, {"d", "b"});
  REQUIRE(asked(1).size() == 1);
  CHECK(asked(1)[0].names == std::vector<std::string>{"a"});
  hashed(1, {first}, 2);  // of another generation
  CHECK(asked(0).empty());
  hashed(1, {first});
  hashed(1, {first});  // twice
  REQUIRE(asked(0).size() == 1);
  hashed(0, {second});
  CHECK(asked(1).back().names == std::vector<std::string>{"c"});
  hashed(1, {third});
  CHECK(here.finished(1).empty());
  hashed(0, {fourth});
  CHECK(here.result(1).weights_sha256 == weights_sha256({fourth, second, third, first}));
}

TEST_CASE("a hash of weights that no device has whole ends with what to do") {
  one_scheduler here({.world_size = 2});
  here.all_enter(here.hash(0, 0));
  here.all_restored();
  here.actors.send(here.scheduler,
                   actors::messages::parameters_listed{1, 0, 1, 0, {"a"}, {0}, "a device holds a part"});
  here.actors.send(here.scheduler, actors::messages::parameters_listed{1, 0, 0, 0, {"b"}, {0}, {}});
  CHECK(here.result(1).problem == "a device holds a part");
  CHECK(here.result(1).weights_sha256.empty());
}

TEST_CASE("steps are granted no faster than the program's callback handles finished steps") {
  one_scheduler here({.world_size = 1});
  here.begin_training(10'000);
  std::uint64_t step = 0;
  for (; step < here.granted().end_step; ++step) {
    here.all_done(step);
    here.all_held(step + 1);
  }
  CHECK(step < 4'200);
  CHECK(here.logged().find("has not handled") != std::string::npos);
  drained(*here.client);
  here.actors.advance(std::chrono::seconds(1));
  CHECK(here.granted().end_step > step);
}
