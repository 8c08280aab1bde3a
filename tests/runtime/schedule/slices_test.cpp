// Plans with several slices: sums over them, what they run together, and reductions among lanes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "runtime/schedule/plan_notation.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/action_graph.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/cut.hpp"
#include "troupe/schedule/find_stall.hpp"
#include "troupe/schedule/text/plan_text.hpp"

using namespace troupe;
using namespace troupe::schedule;
using namespace troupe::testing;
using layout::mesh_axis;
using enum action_kind;

namespace {

using found_problems = std::vector<std::string>;

/// One device a lane: 0F0 1F0 1B0 0B0 1Gtp 0R0 1R0 1G 0G 0R1 1R1 0A 1A, of two replicas of two slices. R0 is
/// of one lane, R1 of both slices of a replica.
plan sliced() {
  return make_plan({.kind = schedule_kind::gpipe,
                    .num_stages = 2,
                    .num_microbatches = 1,
                    .num_devices = 1,
                    .reductions = {reduction({0, 1}, true), reduction({0, 1}, false, {mesh_axis::tp})},
                    .num_replicas = 2,
                    .num_slices = 2,
                    .stages_with_common_parameters = {1}});
}

std::size_t count_of(const plan& checked, const std::string& problem) {
  return static_cast<std::size_t>(std::ranges::count(check_plan(checked), problem));
}

}  // namespace

TEST_CASE("a G names its axis unless that is dp, and no other action names one") {
  CHECK(to_string(action{3, all_reduce, 0, mesh_axis::tp}) == "3Gtp");
  CHECK(to_string(action{3, all_reduce, 2, mesh_axis::tp}) == "3G2tp");
  CHECK(action_from("3Gtp") == action{3, all_reduce, 0, mesh_axis::tp});
  CHECK(action_from("3G2tp") == action{3, all_reduce, 2, mesh_axis::tp});
  for (const auto* text : {"3F0tp", "3Atp", "3R0tp", "3Gdp", "3Gtptp", "3G0tp", "3Gtp1", "Gtp"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(action_from(text), bad_input);
  }
}

TEST_CASE("sums over slices come first, then what each lane combines, then sums over replicas") {
  auto of = sliced();
  CHECK(check_plan(of).empty());
  CHECK(notation(of.devices[0]) == "0F0 1F0 1B0 0B0 1Gtp 0R0 1R0 1G 0G 0R1 1R1 0A 1A");
  CHECK(of.num_job_devices() == 4);
  CHECK(plan_text(of).find("2 replicas, 2 slices") != std::string::npos);
}

TEST_CASE("a G over tp that is missing in a step, occurs twice, has no slices or is out of place is named") {
  auto alone = sliced();
  alone.mesh.num_slices = 1;
  CHECK(count_of(alone, "1Gtp occurs in a plan without several slices") == 1);
  auto twice = sliced();
  twice.devices[0].insert(twice.devices[0].begin() + 4, action{1, all_reduce, 0, mesh_axis::tp});
  CHECK(check_plan(twice) == found_problems{"1Gtp occurs several times"});
  CHECK(count_of(moved(sliced(), "1Gtp", "1B0"),
                 "1B0 comes after 1Gtp, but adds to the gradients that it sums") == 1);
  CHECK(count_of(moved(sliced(), "1Gtp", "1G"), "1R0 comes before 1Gtp, but combines what it sums") == 1);
  CHECK(count_of(moved(sliced(), "1Gtp", "0R1"), "1G comes before 1Gtp, but combines what it sums") == 1);
  CHECK(count_of(moved(sliced(), "1A", "1Gtp"),
                 "1A comes before 1Gtp, but uses the gradients of all slices") == 1);
  auto steps = make_plan({.kind = schedule_kind::pipedream_2bw,
                          .num_stages = 2,
                          .num_microbatches = 2,
                          .num_devices = 2,
                          .flush_every = 2,
                          .num_slices = 2,
                          .stages_with_common_parameters = {0, 1}});
  CHECK(check_plan(steps).empty());
  std::erase(steps.devices[1], action{1, all_reduce, 0, mesh_axis::tp});
  CHECK(check_plan(steps) == found_problems{"1Gtp is missing"});
}

TEST_CASE("what lanes do together is inside a cut for all lanes along the axis, or for none") {
  auto of = sliced();
  // Devices are lanes: replica 0 has 0 and 1, replica 1 has 2 and 3.
  CHECK(smallest_closed_cut(of, {{{0, 5}, {0, 0}, {0, 0}, {0, 0}}}) == cut{{{0, 5}, {0, 5}, {0, 0}, {0, 0}}});
  CHECK(smallest_closed_cut(of, {{{0, 7}, {0, 5}, {0, 0}, {0, 0}}}) == cut{{{0, 7}, {0, 5}, {0, 0}, {0, 0}}});
  CHECK(smallest_closed_cut(of, {{{0, 8}, {0, 5}, {0, 0}, {0, 0}}}) == cut{{{0, 8}, {0, 5}, {0, 8}, {0, 5}}});
  CHECK(smallest_closed_cut(of, {{{0, 10}, {0, 0}, {0, 0}, {0, 0}}}) ==
        cut{{{0, 11}, {0, 11}, {0, 9}, {0, 9}}});
  auto open = find_open_wait(of, {{{0, 5}, {0, 4}, {0, 0}, {0, 0}}});
  REQUIRE(open);
  CHECK(
      open->text ==
      "device 0 runs 1Gtp of step 0, which is one all-reduce with that of another slice, but device 1 stops "
      "before 1Gtp");
}

TEST_CASE("a device waits in a sum over slices for the slice that is behind, not for another replica") {
  auto of = sliced();
  job_positions seen{of, std::vector<std::optional<device_position>>(4), std::vector<loader_position>(4)};
  seen.devices[0] = {device_activity::waiting_for_tensor, 5, 4, 10.0};
  seen.devices[1] = {device_activity::computing, 5, 3, 9.0};
  seen.devices[2] = {device_activity::computing, 5, 0, 8.0};
  CHECK(wait_chains(seen)[0].problem == "device 1 does not return from 0B0 of step 5");
  seen.devices[0] = {device_activity::waiting_for_tensor, 5, 9, 10.0};  // 0R1 of both slices
  seen.devices[1] = {device_activity::computing, 5, 8, 9.0};
  CHECK(wait_chains(seen)[0].problem == "device 1 does not return from 0G of step 5");
}

TEST_CASE("slices run passes together in training and in forwards only, replicas in training only") {
  plan_options options{
      .kind = schedule_kind::gpipe,
      .num_stages = 1,
      .num_microbatches = 1,
      .num_devices = 1,
      .num_replicas = 2,
      .num_slices = 2,
      .has_equal_replicas = true,
      .joint = {{0, forward, mesh_axis::dp}, {0, forward, mesh_axis::tp}, {0, backward, mesh_axis::tp}}};
  auto of = make_plan(options);
  CHECK(check_plan(of).empty());
  CHECK(of.lanes_together({0, forward, 0}, 2) == std::vector{0, 1, 2, 3});
  CHECK(of.lanes_together({0, backward, 0}, 2) == std::vector{2, 3});
  CHECK(of.lanes_together({0, all_reduce, 0}, 2) == std::vector{0, 2});
  auto forwards = forward_projection(of, 3);
  CHECK(check_plan(forwards).empty());
  CHECK(forwards.joint == std::vector<joint_kind>{{0, forward, mesh_axis::tp}});
  CHECK(forwards.num_running_lanes() == 4);
  CHECK(smallest_closed_cut(forwards, {{{0, 0}, {0, 2}, {0, 0}, {0, 1}}}) ==
        cut{{{0, 2}, {0, 2}, {0, 1}, {0, 1}}});
  of.has_equal_replicas = false;
  auto alone = forward_projection(of, 3);
  CHECK(alone.num_running_lanes() == 2);
  CHECK(alone.actions_of(1).size() == 3);
  CHECK(alone.actions_of(2).empty());
}
