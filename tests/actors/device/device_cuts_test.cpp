// What is granted may end within a step, and messages are handled between two actions.
#include <caf/send.hpp>
#include <catch2/catch_test_macros.hpp>

#include "one_device.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Device 1 of 3, to which all tensors of step 0 have come: 1F0 1F1 1B0 1B1 1A.
void all_tensors_come(one_device& here, std::uint64_t step = 0) {
  for (auto role : {transport::tensor_role::activation, transport::tensor_role::gradient})
    for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(step, 1, microbatch, role));
}

actors::messages::step_credit up_to(const one_device& here, std::uint64_t end_step,
                                    std::uint32_t end_action) {
  auto given = here.training(0, end_step);
  given.end_action = end_action;
  return given;
}

}  // namespace

TEST_CASE(
    "a device stops before the action at which its credit ends, says so once, and goes on with the next") {
  one_device here(3, 3, 1);
  here.begin();
  all_tensors_come(here);
  here.give(up_to(here, 0, 1));
  CHECK(here.model->calls == calls{"F1.0"});
  REQUIRE(here.scheduler.all<actors::messages::cut_reached>().size() == 1);
  auto reached = here.scheduler.last<actors::messages::cut_reached>();
  CHECK(reached.generation == 1);
  CHECK(reached.call == 3);
  CHECK(reached.device == 1);
  CHECK(reached.position == plan_position{0, 1});
  here.give(up_to(here, 0, 1));
  CHECK(here.scheduler.all<actors::messages::cut_reached>().size() == 1);
  here.give(up_to(here, 0, 3));
  CHECK(here.model->calls == calls{"F1.0", "F1.1", "I1.0", "W1.0"});
  CHECK(here.scheduler.last<actors::messages::cut_reached>().position == plan_position{0, 3});
  here.give(here.training(0, 1));
  CHECK(here.steps_done() == steps{0});
  CHECK(here.scheduler.all<actors::messages::cut_reached>().size() == 2);
}

TEST_CASE("a device that still waits for a tensor has not reached the end of its credit") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(up_to(here, 0, 2));
  here.tensor_comes(here.tag(0, 1, 0, transport::tensor_role::activation));
  CHECK(here.scheduler.all<actors::messages::cut_reached>().empty());
  here.tensor_comes(here.tag(0, 1, 1, transport::tensor_role::activation));
  CHECK(here.scheduler.all<actors::messages::cut_reached>().size() == 1);
}

TEST_CASE("a device that has done its forwards tells their metrics where its credit ends within the step") {
  one_device whole(1, 1, 0), here(1, 1, 0);
  whole.begin();
  whole.give(whole.training(0, 1));
  whole.batch_arrives(0);
  auto expected = whole.scheduler.last<actors::messages::step_done>().metrics;
  REQUIRE(expected.num_samples > 0);
  here.begin();
  here.batch_arrives(0);
  here.give(up_to(here, 0, 1));
  here.batch_arrives(0);
  CHECK(here.scheduler.last<actors::messages::cut_reached>().metrics == program::step_metrics{});
  for (std::uint32_t action : {2, 3, 4}) {
    here.give(up_to(here, 0, action));
    CHECK(here.scheduler.last<actors::messages::cut_reached>().metrics == expected);
  }
  here.give(here.training(0, 1));
  CHECK(here.scheduler.last<actors::messages::step_done>().metrics == expected);
  here.give(here.training(0, 2));
  here.batch_arrives(1);
  CHECK(here.scheduler.last<actors::messages::step_done>().metrics.num_samples == expected.num_samples);
}

TEST_CASE("a credit may end within a later step than the first that is not done") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(up_to(here, 1, 1));
  all_tensors_come(here, 0);
  all_tensors_come(here, 1);
  CHECK(here.steps_done() == steps{0});
  CHECK(here.model->calls.back() == "F1.0");
  CHECK(here.scheduler.last<actors::messages::cut_reached>().position == plan_position{1, 1});
}

TEST_CASE("a credit takes nothing back") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(up_to(here, 1, 2));
  here.give(here.training(0, 1));
  all_tensors_come(here, 0);
  all_tensors_come(here, 1);
  CHECK(here.scheduler.last<actors::messages::cut_reached>().position == plan_position{1, 2});
}

TEST_CASE("batches are asked of the loader for a step that is granted in part") {
  one_device here(2, 2, 0);
  here.begin();
  here.give(up_to(here, 0, 1));
  CHECK(here.loader.size() == 1);
  here.batch_arrives(0);
  CHECK(here.model->calls == calls{"F0.0"});
}

TEST_CASE("a device tells where it is between two actions, not only when all that is granted is done") {
  one_device here(3, 3, 1);
  here.begin();
  here.model->before = [&](const std::string& call) {
    if (call == "F1.0") caf::send_as(here.owner.handle(), here.device, actors::messages::inspect_device{});
  };
  all_tensors_come(here);
  here.give(up_to(here, 4, 1));
  REQUIRE(here.owner.size() == 1);
  auto told = here.owner.last<actors::messages::device_report>();
  CHECK(told.generation == 1);
  CHECK(told.position.step == 0);
  CHECK(told.position.action == 1);
  CHECK(told.end == plan_position{4, 1});
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("a device stops for a fence between two actions, although more could run") {
  one_device here(1, 1, 0);
  here.begin();
  here.model->before = [&](const std::string& call) {
    if (call == "F0.1") caf::send_as(here.owner.handle(), here.device, actors::messages::quiesce{2});
  };
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  CHECK(here.model->calls == calls{"F0.0", "F0.1"});
  CHECK(here.owner.last<actors::messages::stopped>().interrupted_step == 1);
  // run_on was in its mailbox; the next generation is not disturbed by it.
  here.model->before = [](const std::string&) {};
  here.begin(2);
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("a device gets on although a message comes with every action") {
  one_device here(1, 1, 0);
  here.begin();
  int num_sent = 0;
  here.model->before = [&](const std::string&) {
    ++num_sent;
    for (int i = 0; i < 3; ++i)
      caf::send_as(here.owner.handle(), here.device, actors::messages::inspect_device{});
  };
  here.give(here.training(0, 2));
  here.batch_arrives(0);
  here.batch_arrives(1);
  CHECK(here.steps_done() == steps{0, 1});
  CHECK(here.owner.all<actors::messages::device_report>().size() == static_cast<std::size_t>(3 * num_sent));
}
