// Plans with several replicas of the pipeline: where G is, what is wrong with it, and what waits for it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/schedule/plan_notation.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/action_graph.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/cut.hpp"
#include "troupe/schedule/find_stall.hpp"
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/schedule/simulation/simulate.hpp"
#include "troupe/schedule/text/plan_csv.hpp"
#include "troupe/schedule/text/plan_text.hpp"

using namespace troupe;
using namespace troupe::schedule;
using namespace troupe::testing;
using enum action_kind;

namespace {

using found_problems = std::vector<std::string>;

/// Device 0: 0F0 0F1 0B0 0B1 0G 0A; device 1: 1F0 1F1 1B0 1B1 1G 1A; of two replicas.
plan replicated_stages() {
  return make_plan({.kind = schedule_kind::gpipe,
                    .num_stages = 2,
                    .num_microbatches = 2,
                    .num_devices = 2,
                    .num_replicas = 2});
}

/// One device, with reductions of tied weights and of norms: 0F0 ... 0R0 1R0 1G 0G 0R1 1R1 0A 1A.
plan tied_and_normed() {
  return make_plan({.kind = schedule_kind::gpipe,
                    .num_stages = 2,
                    .num_microbatches = 1,
                    .num_devices = 1,
                    .reductions = {reduction({0, 1}, true), {0, 1}},
                    .num_replicas = 3});
}

}  // namespace

TEST_CASE("an all-reduce is written as G, without a number but that of a later optimizer step") {
  CHECK(to_string(action{3, all_reduce, 0}) == "3G");
  CHECK(to_string(action{3, all_reduce, 2}) == "3G2");
  CHECK(action_from("3G") == action{3, all_reduce, 0});
  CHECK(action_from("3G2") == action{3, all_reduce, 2});
  CHECK_THROWS_AS(action_from("3G0"), bad_input);
}

TEST_CASE("with several replicas each stage has a G after its gradients and tied weights, before norms") {
  CHECK(notation(replicated_stages().devices[0]) == "0F0 0F1 0B0 0B1 0G 0A");
  CHECK(notation(tied_and_normed().devices[0]) == "0F0 1F0 1B0 0B0 0R0 1R0 1G 0G 0R1 1R1 0A 1A");
  for (const auto& row : schedule_table()) {
    auto stages = 4 * usual_chunks(row.kind);
    plan_options options{.kind = row.kind, .num_stages = stages, .num_microbatches = 8, .num_devices = 4};
    auto plain = make_plan(options);
    options.num_replicas = 3;
    auto several = make_plan(options);
    INFO(row.name);
    CHECK(check_plan(several).empty());
    for (auto& list : several.devices)
      std::erase_if(list, [](const action& op) { return op.kind == all_reduce; });
    CHECK(several.devices == plain.devices);
  }
}

TEST_CASE("each optimizer step between two flushes has its G") {
  auto made = make_plan({.kind = schedule_kind::pipedream_2bw,
                         .num_stages = 2,
                         .num_microbatches = 4,
                         .num_devices = 1,
                         .reductions = {{0, 1}},
                         .flush_every = 3,
                         .num_replicas = 2});
  CHECK(check_plan(made).empty());
  for (int step = 0; step < 3; ++step)
    CHECK(std::ranges::count(made.devices[0], action{1, all_reduce, step}) == 1);
  auto without = made;
  std::erase(without.devices[0], action{1, all_reduce, 1});
  CHECK(check_plan(without) == found_problems{"1G1 is missing"});
}

TEST_CASE("a G that is missing, occurs twice, or is of no step or no replicas is named") {
  auto missing = replicated_stages();
  std::erase(missing.devices[1], action{1, all_reduce, 0});
  CHECK(check_plan(missing) == found_problems{"1G is missing"});
  auto twice = replicated_stages();
  twice.devices[0].insert(twice.devices[0].end() - 1, action{0, all_reduce, 0});
  CHECK(check_plan(twice) == found_problems{"0G occurs several times"});
  auto unknown = replicated_stages();
  unknown.devices[0].insert(unknown.devices[0].end() - 1, action{0, all_reduce, 1});
  CHECK(check_plan(unknown) == found_problems{"0G1 is of no optimizer step of the plan"});
  auto alone = replicated_stages();
  alone.mesh.num_replicas = 1;
  CHECK(check_plan(alone) == found_problems{"0G occurs in a plan without several replicas",
                                            "1G occurs in a plan without several replicas"});
  auto elsewhere = replicated_stages();
  elsewhere.devices[0].insert(elsewhere.devices[0].end() - 1, action{1, all_reduce, 0});
  CHECK(std::ranges::count(check_plan(elsewhere), "device 0 does 1G, but stage 1 is on device 1") == 1);
}

TEST_CASE("a G at another place than between gradients and the optimizer's step is named") {
  CHECK(check_plan(moved(replicated_stages(), "0G", "0B1")) ==
        found_problems{"0B1 comes after 0G, but adds to the gradients that it sums"});
  auto late = replicated_stages();
  std::swap(late.devices[0][4], late.devices[0][5]);
  CHECK(check_plan(late) ==
        found_problems{
            "1G sums gradients before the optimizer's step, but 0G averages weights after it: in all "
            "stages it is the one or the other"});
  CHECK(check_plan(moved(tied_and_normed(), "0G", "0R0")) ==
        found_problems{"0R0 comes after 0G, but each replica adds up tied weights before"});
  CHECK(std::ranges::count(check_plan(moved(tied_and_normed(), "0G", "1R1")),
                           "0R1 comes before 0G, but reduces what it sums") == 1);
}

TEST_CASE("where replicas average weights G comes after the optimizer's step, in every schedule") {
  auto averaging = [](plan_options options) {
    options.num_replicas = 2;
    options.averages_weights = true;
    return make_plan(options);
  };
  auto of = averaging(
      {.kind = schedule_kind::gpipe, .num_stages = 2, .num_microbatches = 1, .reductions = {{0, 1}, {0, 1}}});
  CHECK(notation(of.devices[0]) == "0F0 1F0 1B0 0B0 0R0 1R0 0R1 1R1 0A 1A 0G 1G");
  CHECK(check_plan(of).empty());
  CHECK(plan_text(of).find("2 replicas, which average their weights") != std::string::npos);
  CHECK(gradients_cut(of, 3) == cut{{{3, 4}, {3, 4}}});
  CHECK(check_plan(moved(of, "0G", "0A")) ==
        found_problems{
            "0G sums gradients before the optimizer's step, but 1G averages weights after it: in all "
            "stages it is the one or the other"});
  auto missing = of;
  std::erase(missing.devices[0], action{1, all_reduce, 0});
  CHECK(check_plan(missing) == found_problems{"1G is missing"});
  auto late = of;
  std::swap(late.devices[0][9], late.devices[0].back());  // 1A after the Gs
  CHECK_FALSE(check_plan(late).empty());
  for (const auto& row : schedule_table()) {
    INFO(row.name);
    auto stages = 4 * usual_chunks(row.kind);
    auto made = averaging({.kind = row.kind, .num_stages = stages, .num_microbatches = 8, .num_devices = 4});
    CHECK(check_plan(made).empty());
    auto read = read_plan_csv(to_csv(made), "plan.csv", {.mesh = {2}, .averages_weights = true});
    CHECK(read.devices == made.devices);
  }
}

TEST_CASE("numbers of replicas and slices, and orders of reductions, that cannot be are named") {
  auto none = replicated_stages();
  none.mesh.num_replicas = 0;
  CHECK(check_plan(none) == found_problems{"the plan has 0 replicas"});
  none.mesh = {2, 0};
  CHECK(check_plan(none) == found_problems{"the plan has 0 slices"});
  auto late = tied_and_normed();
  std::swap(late.reductions[0], late.reductions[1]);
  CHECK(std::ranges::count(check_plan(late),
                           "reduction 1 comes before the sums over replicas, but the one before "
                           "it does not") == 1);
  CHECK_THROWS_MATCHES(
      make_plan({.num_stages = 1, .reductions = {{0}, reduction({0}, true)}, .num_replicas = 2}), bad_input,
      Catch::Matchers::Message(
          "no plan can be made: reductions that come before the sums over replicas are the first ones"));
  CHECK_THROWS_AS(make_plan({.num_slices = 0}), bad_input);
  CHECK_THROWS_MATCHES(make_plan({.num_replicas = 0}), bad_input,
                       Catch::Matchers::Message("no plan can be made: 0 replicas. Give at least 1"));
}

TEST_CASE("the job's devices are those of each replica, and equal replicas all run forwards") {
  auto of = replicated_stages();
  CHECK(of.num_job_devices() == 4);
  for (int device = 0; device < 4; ++device) {
    CHECK(of.job_device(of.lane_of(device), of.device_of(device)) == device);
    CHECK(of.actions_of(device) == of.devices[static_cast<std::size_t>(device % 2)]);
  }
  auto forwards = forward_projection(of, 3);
  CHECK(forwards.num_running_replicas() == 1);
  CHECK(check_plan(forwards).empty());
  CHECK(forwards.actions_of(1).size() == 3);
  CHECK(forwards.actions_of(2).empty());
  CHECK(is_closed(forwards, step_cut(forwards, 1)));
  of.has_equal_replicas = true;
  auto on_both = forward_projection(of, 3);
  CHECK(on_both.num_running_replicas() == 2);
  CHECK(check_plan(on_both).empty());
  CHECK(on_both.actions_of(2) == forwards.actions_of(0));
  // Each runs a batch of its own: none waits for the other.
  CHECK(is_closed(on_both, {{{1, 2}, {1, 1}, {0, 0}, {0, 0}}}));
  CHECK(read_plan_csv(to_csv(of), "plan.csv", {.mesh = {2}, .has_equal_replicas = true})
            .num_evaluating_replicas() == 2);
}

TEST_CASE("a cut is closed if each all-reduce is inside with the Gs of all replicas or of none") {
  auto of = replicated_stages();
  CHECK(is_closed(of, {{{2, 4}, {2, 4}, {2, 4}, {2, 4}}}));
  auto open = find_open_wait(of, {{{2, 5}, {2, 4}, {2, 4}, {2, 4}}});
  REQUIRE(open);
  CHECK(
      open->text ==
      "device 0 runs 0G of step 2, which is one all-reduce with that of another replica, but device 2 stops "
      "before 0G");
  CHECK(smallest_closed_cut(of, {{{2, 5}, {2, 0}, {2, 0}, {2, 0}}}) == cut{{{2, 5}, {2, 4}, {2, 5}, {2, 4}}});
  CHECK(gradients_cut(of, 7) == cut{{{7, 4}, {7, 4}, {7, 4}, {7, 4}}});
  CHECK(advanced_cut(of, gradients_cut(of, 7), step_unit::action) == cut{{{7, 5}, {7, 4}, {7, 5}, {7, 4}}});
  CHECK(advanced_cut(of, step_cut(of, 0), step_unit::microbatch, 2) == gradients_cut(of, 0));
}

TEST_CASE("a device that waits in G is found to wait for the replica that is behind") {
  auto of = replicated_stages();
  job_positions seen{of, std::vector<std::optional<device_position>>(4), std::vector<loader_position>(4)};
  seen.devices[0] = {device_activity::waiting_for_tensor, 5, 4, 10.0};
  seen.devices[2] = {device_activity::computing, 5, 3, 11.0};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::device);
  CHECK(found.device == 2);
  CHECK(found.problem == "device 2 does not return from 0B1 of step 5");
}

TEST_CASE("a G takes its time in a simulation, and the timeline is that of one replica") {
  auto plain =
      make_plan({.kind = schedule_kind::gpipe, .num_stages = 2, .num_microbatches = 2, .num_devices = 2});
  auto before = simulate(plain, {}), after = simulate(replicated_stages(), {.all_reduce = 5});
  CHECK(after.makespan == before.makespan + 5);
  CHECK(after.devices.size() == 2);
  CHECK(after.peak_activations == before.peak_activations);
}

TEST_CASE("replicas are part of a plan's text, and no part of its file") {
  auto of = tied_and_normed();
  auto plain = of;
  plain.mesh.num_replicas = 2;
  CHECK(plan_text(of) != plan_text(plain));
  CHECK(plan_text(of).find("3 replicas") != std::string::npos);
  CHECK(to_csv(of) == "0F0,1F0,1B0,0B0\n");
  auto read =
      read_plan_csv(to_csv(of), "plan.csv", {.reductions = {reduction({0, 1}, true), {0, 1}}, .mesh = {3}});
  CHECK(read.devices == of.devices);
  CHECK_THROWS_AS(read_plan_csv("0F0,0B0,0R0\n", "plan.csv"), bad_input);
}

namespace {

/// Device 0: 0F0 0F1 0B0 0B1 0G 0A; device 1: 1F0 1F1 1B0 1B1 1G 1A; of two replicas, which run stage 1
/// together.
plan jointly_run_stage() {
  return make_plan({.kind = schedule_kind::gpipe,
                    .num_stages = 2,
                    .num_microbatches = 2,
                    .num_devices = 2,
                    .num_replicas = 2,
                    .joint = joint_passes({1}, layout::mesh_axis::dp)});
}

}  // namespace

TEST_CASE("the stages that replicas run together are in the plan, its text and what a file is read with") {
  auto made = jointly_run_stage();
  CHECK(check_plan(made).empty());
  const auto dp = std::vector{layout::mesh_axis::dp};
  CHECK(made.joint_axes({1, forward, 0}) == dp);
  CHECK(made.joint_axes({1, backward, 1}) == dp);
  CHECK(made.joint_axes({1, weight_gradient, 1}).empty());
  CHECK(made.joint_axes({0, forward, 0}).empty());
  CHECK(plan_text(made) != plan_text(replicated_stages()));
  auto joint = joint_passes({1}, layout::mesh_axis::dp);
  auto read = read_plan_csv(to_csv(made), "plan.csv", {.mesh = {2}, .joint = joint});
  CHECK(read.joint == joint);
  CHECK(read_plan_csv(to_csv(made), "plan.csv", {.joint = joint}).joint.empty());
  CHECK(make_plan({.num_stages = 2, .num_devices = 1, .joint = joint}).joint.empty());
  CHECK(forward_projection(made, 3).joint.empty());
  auto rows = [](int stage, action_kind kind) { return std::vector<joint_kind>{{stage, kind}}; };
  for (const auto& each : {rows(2, forward), rows(-1, forward), rows(0, apply),
                           std::vector<joint_kind>{{1, forward}, {0, forward}},
                           std::vector<joint_kind>{{1, forward}, {1, forward}}}) {
    auto wrong = made;
    wrong.joint = each;
    CHECK_FALSE(check_plan(wrong).empty());
    CHECK_THROWS_AS(make_plan({.num_stages = 2, .num_devices = 1, .num_replicas = 2, .joint = each}),
                    bad_input);
  }
  auto alone = make_plan({.num_stages = 2, .num_devices = 1});
  alone.joint = rows(1, forward);
  CHECK(check_plan(alone) == found_problems{"lanes along dp run 1F0 together, but there is one lane"});
  auto forwards = forward_projection(replicated_stages(), 3);
  forwards.joint = rows(1, forward);
  CHECK(check_plan(forwards) == found_problems{"replicas run 1F0 together, but each runs another batch"});
}

TEST_CASE("a joint action waits for what those of the other replicas wait for") {
  auto made = jointly_run_stage();
  auto closed = smallest_closed_cut(made, {{{0, 0}, {0, 1}, {0, 0}, {0, 0}}});
  CHECK(closed == cut{{{0, 1}, {0, 1}, {0, 1}, {0, 1}}});  // 1F0 of both, and what it takes
  auto open = find_open_wait(made, {{{0, 1}, {0, 1}, {0, 1}, {0, 0}}});
  REQUIRE(open);
  CHECK(open->is_together);
  CHECK(open->text ==
        "device 1 runs 1F0 of step 0, which all replicas run together, but device 3 stops before 1F0");
  CHECK(is_closed(made, {{{0, 1}, {0, 0}, {0, 0}, {0, 0}}}));  // stage 0 runs alone
  open = find_open_wait(made, {{{0, 1}, {0, 1}, {0, 0}, {0, 0}}});
  REQUIRE(open);
  CHECK(open->is_together);
  CHECK(open->other_device == 3);
  // Of all single actions the furthest behind: 1F0 of both replicas.
  cut after_forwards{{{0, 2}, {0, 0}, {0, 2}, {0, 0}}};
  CHECK(advanced_cut(made, after_forwards, step_unit::action) == cut{{{0, 2}, {0, 1}, {0, 2}, {0, 1}}});
}

TEST_CASE("a device that waits within a joint action waits for the replica that does not return from it") {
  auto made = jointly_run_stage();
  auto at = [](device_activity activity, std::size_t action) {
    return std::optional(device_position{activity, 3, action, 2.0});
  };
  job_positions seen{made,
                     {at(device_activity::waiting_for_tensor, 2), at(device_activity::waiting_for_tensor, 1),
                      at(device_activity::waiting_for_tensor, 2), at(device_activity::computing, 1)},
                     std::vector<loader_position>(4)};
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::device);
  CHECK(found.problem == "device 3 does not return from 1F1 of step 3");
  seen.devices[3] = at(device_activity::waiting_for_samples, 1);
  CHECK(find_stall(seen).problem == "device 3 waits for samples of step 3, which its loader does not make");
  seen.devices[3] = at(device_activity::waiting_for_tensor, 0);
  seen.devices[2] = at(device_activity::computing, 0);
  CHECK(find_stall(seen).problem == "device 2 does not return from 0F0 of step 3");
  seen.devices[2] = at(device_activity::waiting_for_tensor, 2);
  seen.devices[3] = at(device_activity::waiting_for_tensor, 1);
  found = find_stall(seen);
  CHECK(found.cause == stall_cause::lost_tensor);
  CHECK_THAT(found.problem, Catch::Matchers::ContainsSubstring("sent within 1F1 of step 3"));
}

TEST_CASE(
    "a joint action that is the first of its devices waits for a replica in the step before, or for "
    "what was "
    "lost") {
  auto made = make_plan(
      {.kind = schedule_kind::gpipe, .num_replicas = 2, .joint = joint_passes({0}, layout::mesh_axis::dp)});
  auto at = [](device_activity activity, std::uint64_t step, std::size_t action) {
    return std::optional(device_position{activity, step, action, 2.0});
  };
  // 0F0 0B0 0G 0A
  job_positions seen{made,
                     {at(device_activity::waiting_for_tensor, 3, 0), at(device_activity::applying, 2, 3)},
                     std::vector<loader_position>(2)};
  CHECK(find_stall(seen).problem == "device 1 does not return from the optimizer's step of step 2");
  seen.devices[1] = at(device_activity::idle, 3, 0);
  CHECK(find_stall(seen).cause == stall_cause::missing_credit);
  seen.devices[1] = at(device_activity::waiting_for_tensor, 3, 0);
  auto found = find_stall(seen);
  CHECK(found.cause == stall_cause::lost_tensor);
  CHECK(found.problem == "device 0 has not got what device 1 sent within 0F0 of step 3");
}
