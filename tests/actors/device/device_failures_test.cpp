#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "one_device.hpp"
#include "troupe/messages/loader.hpp"
#include "troupe/messages/stage.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("the abort word stops a device between two actions") {
  one_device here(1, 1, 0);
  here.begin();
  here.model->before = [&](const std::string& call) {
    if (call == "F0.1") here.fenced->store(2);
  };
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  CHECK(here.model->calls == calls{"F0.0", "F0.1"});
  CHECK(here.steps_done().empty());
}

TEST_CASE("the abort word of the current generation does not stop a device") {
  one_device here(1, 1, 0);
  here.fenced->store(2);
  here.begin(2);
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("a stopped device reports the interrupted step and computes no more") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 3));
  here.batch_arrives(0);
  auto answer = here.stop(2);
  REQUIRE(answer.value);
  CHECK(answer.value->generation == 2);
  CHECK(answer.value->interrupted_step == 2);  // one is done, the second begun
  here.model->calls.clear();
  here.batch_arrives(1);
  here.give(here.training(0, 5));
  CHECK(here.model->calls.empty());
}

TEST_CASE("a device stopped between two steps reports the number of finished steps as interrupted") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  CHECK(here.stop(2).value->interrupted_step == 1);
}

TEST_CASE("a device that does not train reports no interrupted step") {
  one_device here(1, 1, 0);
  CHECK(here.stop(1).value->interrupted_step == 0);
  here.begin();
  CHECK(here.stop(2).value->interrupted_step == 0);
  here.begin(2);
  here.give({2, {3, actors::job::call_kind::evaluate, 1, 0, 2, 2}, 0, 2, {}, 0});
  CHECK(here.stop(3).value->interrupted_step == 0);
}

TEST_CASE("two fences in a row get the same answer") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 3));
  here.batch_arrives(0);
  CHECK(here.stop(2).value->interrupted_step == 2);
  CHECK(here.stop(3).value->interrupted_step == 2);
}

TEST_CASE("a stopped device releases its stages") {
  one_device here(1, 1, 0);
  auto program = std::make_shared<fake_program>(here.model, layout::cell());
  std::weak_ptr<fake_program> watched = program;
  here.actors.send(here.device,
                   actors::messages::begin_generation{1,
                                                      here.job,
                                                      {{0, std::move(program), here.owner.handle()}},
                                                      here.scheduler.handle(),
                                                      here.loader.handle()});
  CHECK_FALSE(watched.expired());
  here.stop(2);
  CHECK(watched.expired());
}

TEST_CASE("a new generation drops tensors of the old one and delivers its own, which were held") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(here.training(0, 1));
  here.tensor_comes(here.tag(0, 1, 1, transport::tensor_role::activation));  // of generation 1, never taken
  here.tensor_comes({2, 0, 3, 1, 0, transport::tensor_role::activation});    // of generation 2, early
  here.stop(2);
  here.begin(2);
  here.give(here.training(0, 1));
  CHECK(here.model->calls == calls{"F1.0"});
  here.tensor_comes({1, 0, 3, 1, 1, transport::tensor_role::activation});  // late
  CHECK(here.model->calls == calls{"F1.0"});
  here.tensor_comes(here.tag(0, 1, 1, transport::tensor_role::activation));
  CHECK(here.model->calls == calls{"F1.0", "F1.1"});
}

TEST_CASE("copies that were due in the old generation are forgotten") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 2, {{1, 0}, {2, 1}}));
  here.stop(2);
  here.begin(2);
  here.give(here.training(0, 2, {{2, 0}}));
  for (std::uint64_t step : {0, 1}) here.batch_arrives(step);
  auto copies = here.owner.all<actors::messages::state_copied>();
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].step == 2);
  CHECK_FALSE(copies[0].to_disk);
  CHECK(copies[0].generation == 2);
}

TEST_CASE("an exception of the program ends the device with its text") {
  one_device here(1, 1, 0);
  obituary of(here.actors, here.device);
  here.begin();
  here.model->before = [](const std::string& call) {
    if (call == "W0.1") throw std::runtime_error("not a number in the gradient");
  };
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  CHECK(of.reason() == "not a number in the gradient");
  CHECK(here.steps_done().empty());
}

TEST_CASE("a tensor of a GPU that could not be sent ends the device, unless its generation has ended") {
  one_device here(1, 1, 0);
  obituary of(here.actors, here.device);
  auto fail = [&](std::uint64_t generation) {
    auto cause = std::make_exception_ptr(std::runtime_error("no memory for the copy"));
    here.actors.send(here.device, actors::messages::copy_failed{generation, cause});
  };
  here.begin();
  here.stop(2);
  fail(1);
  here.begin(2);
  fail(1);
  CHECK_FALSE(of.reason());
  fail(2);
  CHECK(of.reason() == "no memory for the copy");
}

TEST_CASE("a tensor that arrives twice ends the device") {
  one_device here(3, 3, 1);
  obituary of(here.actors, here.device);
  here.begin();
  here.tensor_comes(here.tag(0, 1, 0, transport::tensor_role::activation));
  here.tensor_comes(here.tag(0, 1, 0, transport::tensor_role::activation));
  REQUIRE(of.reason());
  CHECK(of.reason()->find("each tensor once") != std::string::npos);
}

TEST_CASE(
    "a device that finds a non-finite value names it, applies no update to that stage, copies nothing and "
    "stops") {
  one_device here(2, 1, 0);
  here.begin();
  here.model->non_finite = [](int stage, std::uint64_t step) {
    return stage == 1 && step == 1 ? "the gradient of 1.weight" : "";
  };
  here.give(here.training(0, 4, {{1, 0}, {2, 0}}));
  for (std::uint64_t step = 0; step < 4; ++step) here.batch_arrives(step);
  CHECK(here.steps_done() == steps{0, 1});
  auto reports = here.scheduler.all<actors::messages::step_done>();
  CHECK(reports.front().non_finite.empty());
  CHECK(reports.back().non_finite == "stage 1: the gradient of 1.weight");
  CHECK(std::ranges::count(here.model->calls, "A0@0") == 1);
  CHECK(std::ranges::count(here.model->calls, "A1@0") == 1);
  CHECK(std::ranges::count(here.model->calls, "A1@1") == 0);
  for (const auto& copy : here.owner.all<actors::messages::state_copied>()) CHECK(copy.step == 1);
}

TEST_CASE("a device whose job skips non-finite steps names each skipped step and continues") {
  one_device here(1, 1, 0);
  here.job->on_non_finite = non_finite_policy::skip;
  here.begin();
  here.model->non_finite = [](int, std::uint64_t step) {
    return step == 0 ? "the gradient of 0.weight" : "";
  };
  here.give(here.training(0, 2));
  for (std::uint64_t step = 0; step < 2; ++step) here.batch_arrives(step);
  CHECK(here.steps_done() == steps{0, 1});
  CHECK(here.scheduler.all<actors::messages::step_done>().front().non_finite ==
        "stage 0: the gradient of 0.weight");
}

TEST_CASE("a device requests of a restarted loader what the previous one has not sent") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 3));
  here.batch_arrives(1);
  probe next(here.actors);
  here.actors.send(here.device, actors::messages::loader_replaced{next.handle()});
  REQUIRE(next.all<actors::messages::want_batch>().size() == 1);
  CHECK(next.last<actors::messages::want_batch>().step == 0);
  CHECK(next.last<actors::messages::want_batch>().call == 3);
  here.batch_arrives(0);
  here.batch_arrives(0);  // of the previous loader, late
  here.batch_arrives(2);
  CHECK(here.steps_done() == steps{0, 1, 2});
  CHECK(next.last<actors::messages::want_batch>().step == 2);
}

TEST_CASE("a device that is stopped or idle requests nothing of a restarted loader") {
  one_device here(1, 1, 0);
  probe next(here.actors);
  here.actors.send(here.device, actors::messages::loader_replaced{next.handle()});
  here.begin();
  here.actors.send(here.device, actors::messages::loader_replaced{next.handle()});
  CHECK(next.all<actors::messages::want_batch>().empty());
  here.give(here.training(0, 1));
  CHECK(next.last<actors::messages::want_batch>().step == 0);
  here.stop(2);
  next.clear();
  here.actors.send(here.device, actors::messages::loader_replaced{next.handle()});
  CHECK(next.all<actors::messages::want_batch>().empty());
}
