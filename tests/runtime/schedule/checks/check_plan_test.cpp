#include "troupe/schedule/checks/check_plan.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/schedule/gradient_order.hpp"

using findings = std::vector<std::string>;
using enum troupe::schedule_kind;

namespace {

troupe::plan plan_of(troupe::schedule_kind kind, int num_stages, int num_microbatches) {
  return troupe::make_plan({.kind = kind,
                            .num_stages = num_stages,
                            .num_microbatches = num_microbatches,
                            .num_devices = num_stages});
}

std::vector<troupe::action> actions(std::initializer_list<const char*> texts) {
  std::vector<troupe::action> read;
  for (auto text : texts) read.push_back(troupe::action_from(text));
  return read;
}

/// Two stages on two devices, two microbatches, with the given actions and an A of each stage.
troupe::plan two_by_two(std::initializer_list<const char*> first, std::initializer_list<const char*> second) {
  troupe::plan made{.kind = gpipe,
                    .num_stages = 2,
                    .num_microbatches = 2,
                    .device_of_stage = {0, 1},
                    .edges = troupe::schedule::chain_edges(2),
                    .devices = {actions(first), actions(second)}};
  made.devices[0].push_back(troupe::action_from("0A"));
  made.devices[1].push_back(troupe::action_from("1A"));
  return made;
}

}  // namespace

TEST_CASE("a split backward is sound, whenever its weight gradients come") {
  CHECK(troupe::schedule::check_plan(
            two_by_two({"0F0", "0F1", "0I0", "0I1", "0W0", "0W1"}, {"1F0", "1I0", "1F1", "1W0", "1B1"}))
            .empty());
}

TEST_CASE("a missing action is named") {
  CHECK(troupe::schedule::check_plan(two_by_two({"0F0", "0F1", "0B0", "0B1"}, {"1F0", "1F1", "1B0"})) ==
        findings{"1B1 is missing"});
  CHECK(troupe::schedule::check_plan(two_by_two({"0F0", "0B0", "0B1"}, {"1F0", "1F1", "1B0", "1B1"})) ==
        findings{"0F1 is missing"});
  CHECK(troupe::schedule::check_plan(two_by_two({"0F0", "0F1", "0I0", "0B1"},
                                                {"1F0", "1F1", "1B0", "1B1"})) == findings{"0W0 is missing"});
  CHECK(troupe::schedule::check_plan(two_by_two({"0F0", "0F1", "0W0", "0B1"},
                                                {"1F0", "1F1", "1B0", "1B1"})) == findings{"0I0 is missing"});
}

TEST_CASE("an action that occurs twice is named") {
  CHECK(troupe::schedule::check_plan(
            two_by_two({"0F0", "0F1", "0F1", "0B0", "0B1"}, {"1F0", "1F1", "1B0", "1B1"})) ==
        findings{"0F1 occurs 2 times"});
  CHECK(troupe::schedule::check_plan(
            two_by_two({"0F0", "0F1", "0B0", "0W0", "0B1"}, {"1F0", "1F1", "1B0", "1B1"})) ==
        findings{"0B0 is a whole backward, so 0W0 is done twice"});
}

TEST_CASE("an action on another device than its stage is named") {
  CHECK(
      troupe::schedule::check_plan(two_by_two({"0F0", "0F1", "1F0", "0B0", "0B1"}, {"1F1", "1B0", "1B1"})) ==
      findings{"device 0 does 1F0, but stage 1 is on device 1"});
}

TEST_CASE("an action of a missing stage or microbatch is named") {
  CHECK(troupe::schedule::check_plan(
            two_by_two({"0F0", "0F1", "0B0", "0B1", "2F0"}, {"1F0", "1F1", "1B0", "1B1", "1F7"})) ==
        findings{"device 0 does 2F0, but there are stages 0 to 1 and microbatches 0 to 1",
                 "device 1 does 1F7, but there are stages 0 to 1 and microbatches 0 to 1"});
}

TEST_CASE("weight gradients out of order are named, be the backward whole or split") {
  CHECK(
      troupe::schedule::check_plan(two_by_two({"0F0", "0F1", "0B0", "0B1"}, {"1F0", "1F1", "1B1", "1B0"})) ==
      findings{"device 1 does 1B0 after 1B1, but a stage's weight gradients add up in ascending order of "
               "microbatches, or in all stages in descending order"});
  CHECK(troupe::schedule::check_plan(
            two_by_two({"0F0", "0F1", "0B0", "0B1"}, {"1F0", "1F1", "1I0", "1I1", "1W1", "1W0"})) ==
        findings{"device 1 does 1W0 after 1W1, but a stage's weight gradients add up in ascending order of "
                 "microbatches, or in all stages in descending order"});
}

TEST_CASE(
    "weight gradients may come in descending order, if they do so in all stages of one optimizer step") {
  using troupe::schedule::gradient_order, troupe::schedule::gradient_order_of;
  auto descending = two_by_two({"0F0", "0F1", "0B1", "0B0"}, {"1F0", "1F1", "1I1", "1I0", "1W1", "1W0"});
  CHECK(troupe::schedule::gradient_order_of(descending) == gradient_order::descending);
  CHECK(troupe::schedule::check_plan(descending).empty());
  auto one = two_by_two({"0F0", "0F1", "0B1", "0B0"}, {"1F0", "1F1", "1B0", "1B1"});
  CHECK(troupe::schedule::gradient_order_of(one) == gradient_order::ascending);
  CHECK_FALSE(troupe::schedule::check_plan(one).empty());
  for (auto kind : {gpipe, one_f_one_b, zb_h1, forward_only})
    CHECK(troupe::schedule::gradient_order_of(plan_of(kind, 2, 4)) == gradient_order::ascending);
  CHECK(troupe::schedule::gradient_order_of(plan_of(gpipe, 2, 1)) == gradient_order::ascending);
  // Not monotonous.
  auto drawn = plan_of(gpipe, 1, 3);
  drawn.devices[0] = actions({"0F0", "0F1", "0F2", "0B2", "0B0", "0B1", "0A"});
  CHECK(troupe::schedule::gradient_order_of(drawn) == gradient_order::ascending);
  CHECK_FALSE(troupe::schedule::check_plan(drawn).empty());
}

TEST_CASE("forwards out of order are named") {
  CHECK(
      troupe::schedule::check_plan(two_by_two({"0F1", "0F0", "0B0", "0B1"}, {"1F0", "1F1", "1B0", "1B1"})) ==
      findings{"device 0 does 0F0 after 0F1, but a stage's forwards come in ascending order of "
               "microbatches"});
  auto forwards = plan_of(forward_only, 1, 3);
  std::swap(forwards.devices[0][1], forwards.devices[0][2]);
  CHECK(troupe::schedule::check_plan(forwards) ==
        findings{"device 0 does 0F1 after 0F2, but a stage's forwards come in ascending order of "
                 "microbatches"});
}

TEST_CASE("input gradients may come in any order") {
  CHECK(troupe::schedule::check_plan(
            two_by_two({"0F0", "0F1", "0B0", "0B1"}, {"1F0", "1F1", "1I1", "1I0", "1W0", "1W1"}))
            .empty());
}

TEST_CASE("a backward in a plan of forwards only is named") {
  auto forwards = plan_of(forward_only, 2, 2);
  forwards.devices[1].push_back(troupe::action_from("1B0"));
  CHECK(troupe::schedule::check_plan(forwards) == findings{"1B0 occurs in a plan of forwards only"});
}

TEST_CASE("an optimizer's step that is missing, there twice, too early, elsewhere or numbered is named") {
  auto changed = [](auto change) {
    auto made = plan_of(gpipe, 2, 1);
    change(made);
    return troupe::schedule::check_plan(made);
  };
  auto apply = troupe::action_from("1A");
  CHECK(changed([](troupe::plan&) {}).empty());
  CHECK(changed([](troupe::plan& made) { made.devices[1].pop_back(); }) == findings{"1A is missing"});
  CHECK(changed([&](troupe::plan& made) { made.devices[1].push_back(apply); }) ==
        findings{"1A occurs 2 times"});
  CHECK(changed([](troupe::plan& made) { std::swap(made.devices[1][1], made.devices[1][2]); }) ==
        findings{"device 1 does 1B0 after 1A, but the optimizer's step is the last that a stage does"});
  CHECK(changed([&](troupe::plan& made) {
          made.devices[1].pop_back();
          made.devices[0].push_back(apply);
        }) == findings{"device 0 does 1A, but stage 1 is on device 1"});
  CHECK(changed([](troupe::plan& made) { made.devices[1].back().microbatch = 3; }) ==
        findings{"1A3 has a number. Write 1A"});
  CHECK(changed([](troupe::plan& made) { made.devices[1].back().stage = 2; }) ==
        findings{"device 1 does 2A, but there are stages 0 to 1 and microbatches only 0", "1A is missing"});
  auto forwards = plan_of(forward_only, 2, 1);
  forwards.devices[1].push_back(apply);
  CHECK(troupe::schedule::check_plan(forwards) == findings{"1A occurs in a plan of forwards only"});
}

TEST_CASE("an optimizer's step waits for no other stage") {
  auto made = troupe::make_plan({.kind = gpipe, .num_stages = 2, .num_devices = 1});
  // 0F0 1F0 1B0 1A 0B0 0A
  std::swap(made.devices[0][3], made.devices[0][5]);
  std::swap(made.devices[0][4], made.devices[0][5]);
  CHECK(troupe::schedule::check_plan(made).empty());
}

TEST_CASE("a cycle within one device is named") {
  CHECK(
      troupe::schedule::check_plan(two_by_two({"0F0", "0F1", "0B0", "0B1"}, {"1B0", "1F0", "1F1", "1B1"})) ==
      findings{"deadlock: 1B0 waits for 1F0, which device 1 only does after 1B0"});
}

TEST_CASE("a cycle over two devices is named with all its waits") {
  CHECK(
      troupe::schedule::check_plan(two_by_two({"0F0", "0B0", "0F1", "0B1"}, {"1F0", "1F1", "1B0", "1B1"})) ==
      findings{"deadlock: 0B0 waits for 1B0, which device 1 only does after 1F1; "
               "1F1 waits for 0F1, which device 0 only does after 0B0"});
}

TEST_CASE("a device that only waits for a cycle is not named in its error") {
  auto made = plan_of(gpipe, 3, 1);
  std::swap(made.devices[2][0], made.devices[2][1]);
  CHECK(troupe::schedule::check_plan(made) ==
        findings{"deadlock: 2B0 waits for 2F0, which device 2 only does after 2B0"});
}

TEST_CASE("each cycle has its own error") {
  auto made = plan_of(gpipe, 3, 1);
  std::swap(made.devices[0][0], made.devices[0][1]);
  std::swap(made.devices[2][0], made.devices[2][1]);
  CHECK(troupe::schedule::check_plan(made) ==
        findings{"deadlock: 0B0 waits for 0F0, which device 0 only does after 0B0",
                 "deadlock: 2B0 waits for 2F0, which device 2 only does after 2B0"});
}

TEST_CASE("a plan of the wrong form is refused before its actions are looked at") {
  auto made = plan_of(gpipe, 2, 2);
  made.device_of_stage = {0};
  CHECK(troupe::schedule::check_plan(made) ==
        findings{"the plan has 2 stages, but says for 1 on which device they are"});
  made.device_of_stage = {0, 2};
  CHECK(troupe::schedule::check_plan(made) ==
        findings{"stage 1 is on device 2, but the plan has devices 0 to 1"});
  CHECK(troupe::schedule::check_plan({}) == findings{"the plan has 0 stages", "the plan has 0 microbatches"});
}

TEST_CASE("edges that are no graph, or not in order, are told before the actions are looked at") {
  auto made = plan_of(gpipe, 3, 2);
  made.devices[0].clear();
  made.edges = {{0, 0, 2, 0}};
  CHECK(troupe::schedule::check_plan(made) ==
        findings{"no edge leads from stage 1, but only the last stage, 2, computes the loss. Give its output "
                 "to a stage after it, or leave it out"});
  made.edges = {{1, 0, 2, 0}, {0, 0, 1, 0}};
  CHECK(troupe::schedule::check_plan(made) ==
        findings{"edge 0.0 -> 1.0 comes after 1.0 -> 2.0, but a plan's edges ascend by sender, output, "
                 "receiver and input"});
}

TEST_CASE("reductions among stages that are not there, out of order, or without gradients are told") {
  for (const std::vector<int>& members : {std::vector<int>{}, {0, 2}, {-1}, {1, 0}, {0, 0}}) {
    auto made = plan_of(gpipe, 2, 1);
    made.reductions = {troupe::schedule::reduction(members)};
    auto found = troupe::schedule::check_plan(made);
    REQUIRE(found.size() == 1);
    CHECK(found[0].starts_with("reduction 0 is among "));
    CHECK(found[0].ends_with("at least one of the stages 0 to 1, in ascending order"));
  }
  auto forwards = plan_of(forward_only, 2, 1);
  forwards.reductions = {{0, 1}};
  CHECK(troupe::schedule::check_plan(forwards) ==
        findings{"the plan has reductions of gradients, but forwards only"});
}
