// U and S: where they may be, what waits for them, and how they are written.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "runtime/schedule/plan_notation.hpp"
#include "support/text_of.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/action_graph.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/cut.hpp"
#include "troupe/schedule/find_stall.hpp"
#include "troupe/schedule/simulation/simulate.hpp"
#include "troupe/schedule/text/draw.hpp"
#include "troupe/schedule/text/plan_csv.hpp"

using namespace troupe;
using namespace troupe::schedule;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using layout::mesh_axis;
using enum action_kind;

namespace {

using found_problems = std::vector<std::string>;

/// Two replicas of one device with the list `text`, and the G and A of each stage.
plan plan_of(const std::string& text, int num_replicas = 2) {
  return read_plan_csv(text, "plan.csv", {.mesh = {num_replicas}});
}

/// The same without what reading checks.
plan changed(plan of, const std::vector<std::string>& actions) {
  of.devices[0].clear();
  for (const auto& each : actions) of.devices[0].push_back(action_from(each));
  return of;
}

const char* const fully_sharded = "0U,0F0,0S,0U,0B0,0S";

}  // namespace

TEST_CASE("U and S have a stage and no number, and name their axis unless it is dp") {
  CHECK(to_string(action{3, unshard, 0}) == "3U");
  CHECK(to_string(action{3, reshard, 0, mesh_axis::tp}) == "3Stp");
  CHECK(action_from("3U") == action{3, unshard, 0});
  CHECK(action_from("3Stp") == action{3, reshard, 0, mesh_axis::tp});
  for (const auto* text : {"3U0", "3U1", "3S0tp", "U", "3Udp"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(action_from(text), bad_input);
  }
}

TEST_CASE("each use of a stage's parameters lies behind a U and before the next S, which alternate") {
  auto sound = plan_of(fully_sharded);
  CHECK(notation(sound.devices[0]) == "0U 0F0 0S 0U 0B0 0S 0G 0A");
  CHECK(check_plan(changed(sound, {"0U", "0F0", "0B0", "0G", "0A"})).empty());  // none is freed
  CHECK(check_plan(changed(sound, {"0U", "0F0", "0I0", "0S", "0W0", "0G", "0A"})).empty());
  CHECK(check_plan(changed(sound, {"0F0", "0U", "0B0", "0G", "0A"})) ==
        found_problems{"0F0 comes before any U of its stage, but reads the whole parameters"});
  CHECK(check_plan(changed(sound, {"0U", "0F0", "0S", "0B0", "0G", "0A"})) ==
        found_problems{"0B0 comes after 0S, but reads the whole parameters"});
  CHECK(check_plan(changed(sound, {"0U", "0U", "0F0", "0B0", "0G", "0A"})) ==
        found_problems{"0U comes after 0U, but the stage has its whole parameters already"});
  CHECK(check_plan(changed(sound, {"0U", "0F0", "0B0", "0S", "0S", "0G", "0A"})) ==
        found_problems{"0S comes without a U before it, but the stage has only its shard"});
  auto sliced = sound;
  sliced.mesh.num_slices = 2;
  CHECK(check_plan(changed(sliced, {"0U", "0F0", "0Stp", "0U", "0B0", "0G", "0A"})) ==
        found_problems{"0Stp comes after 0U, but a stage's parameters are sharded along one axis",
                       "0U comes after 0Stp, but a stage's parameters are sharded along one axis"});
  auto numbered = sound;
  numbered.devices[0][0].microbatch = 1;
  CHECK(check_plan(numbered) == found_problems{"0U1 has a number. U and S have none"});
  auto late = changed(sound, {"0U", "0F0", "0B0", "0G", "0A", "0S"});
  CHECK(check_plan(late) ==
        found_problems{"device 0 does 0S after 0A, but the optimizer's step is the last that a stage does"});
}

TEST_CASE("a U that no later pass reads is a finding") {
  auto sound = plan_of(fully_sharded);
  CHECK(check_plan(changed(sound, {"0U", "0F0", "0B0", "0S", "0U", "0G", "0A"})) ==
        found_problems{"0U gathers parameters that nothing reads after it"});
}

TEST_CASE(
    "with shards each device begins with a U of each of its stages that has none, in the order of passes") {
  plan_options options{.num_stages = 4,
                       .num_microbatches = 2,
                       .num_devices = 2,
                       .num_replicas = 2,
                       .gathers = {.gathers = true}};
  auto made = make_plan(options);
  CHECK(check_plan(made).empty());
  CHECK(notation(made.devices[1]).starts_with("2U 3U 2F0 "));
  CHECK(notation(forward_projection(made, 1).devices[1]) == "2U 3U 2F0 3F0");
  options.num_replicas = 1;
  CHECK_FALSE(shards_parameters(make_plan(options)));
  auto read =
      read_plan_csv("0UNSHARD,0F0,1F0,1B0,0B0", "partly", {.mesh = {2}, .gathers = {.gathers = true}});
  CHECK(notation(read.devices[0]).starts_with("1U 0U 0F0 1F0 "));
}

TEST_CASE("what frees parameters has a U before each run of passes of one stage, and an S behind it") {
  auto list_of = [](reshard_point point, int ahead) {
    auto made = make_plan({.num_stages = 2,
                           .num_microbatches = 2,
                           .num_devices = 1,
                           .num_replicas = 2,
                           .gathers = {.gathers = true, .frees = true, .reshards = point, .ahead = ahead}});
    CHECK(check_plan(made).empty());
    CHECK(frees_parameters(made));
    CHECK(frees_parameters(forward_projection(made, 2)));
    return notation(made.devices[0]);
  };
  const std::string updates = " 1G 0G 0A 1A";
  CHECK(list_of(reshard_point::pass, 0) ==
        "0U 0F0 0S 1U 1F0 1S 0U 0F1 0S 1U 1B0 1F1 1S 0U 0B0 0S 1U 1B1 1S 0U 0B1 0S" + updates);
  CHECK(list_of(reshard_point::step, 0) == "0U 0F0 1U 1F0 0F1 1B0 1F1 0B0 1B1 1S 0B1 0S" + updates);
  // What would be gathered again before another pass stays.
  CHECK(list_of(reshard_point::pass, 1) == "0U 1U 0F0 1F0 0F1 0S 1B0 0U 1F1 0B0 1B1 1S 0B1 0S" + updates);
  CHECK(list_of(reshard_point::pass, 64) == list_of(reshard_point::step, 1));
}

TEST_CASE("a U comes so many passes of the device before the one that needs it") {
  auto list_of = [](int ahead) {
    auto made = make_plan({.kind = schedule_kind::looped_bfs,
                           .num_stages = 3,
                           .num_microbatches = 1,
                           .num_devices = 1,
                           .num_replicas = 2,
                           .gathers = {.gathers = true, .frees = true, .ahead = ahead}});
    CHECK(check_plan(made).empty());
    return notation(made.devices[0]);
  };
  const std::string updates = " 2G 1G 0G 0A 1A 2A";
  CHECK(list_of(0) == "0U 0F0 0S 1U 1F0 1S 2U 2F0 2B0 2S 1U 1B0 1S 0U 0B0 0S" + updates);
  CHECK(list_of(1) == "0U 1U 0F0 0S 2U 1F0 1S 2F0 1U 2B0 2S 0U 1B0 1S 0B0 0S" + updates);
}

TEST_CASE("forwards of a plan that runs stage after stage are projected so, and gathered as its own") {
  auto options_of = [](schedule_kind kind) {
    return plan_options{.kind = kind,
                        .num_stages = 2,
                        .num_microbatches = 2,
                        .num_devices = 1,
                        .num_replicas = 2,
                        .gathers = {.gathers = true, .frees = true, .ahead = 0}};
  };
  auto projected = [](const plan_options& options) {
    return notation(forward_projection(make_plan(options), 3).devices[0]);
  };
  auto options = options_of(schedule_kind::looped_bfs);
  CHECK(projected(options) == "0U 0F0 0F1 0F2 0S 1U 1F0 1F1 1F2 1S");
  options.gathers.ahead = 2;
  CHECK(projected(options) == "0U 0F0 1U 0F1 0F2 0S 1F0 1F1 1F2 1S");
  auto other = options_of(schedule_kind::one_f_one_b);
  CHECK(projected(other) == "0U 0F0 0S 1U 1F0 1S 0U 0F1 0S 1U 1F1 1S 0U 0F2 0S 1U 1F2 1S");
  other.gathers.reshards = reshard_point::step;
  CHECK(projected(other) == "0U 0F0 1U 1F0 0F1 1F1 0F2 0S 1F2 1S");
  options.gathers.ahead = -1;
  CHECK_THAT(refusal(options), ContainsSubstring("from 0 to 64 passes ahead, not -1"));
}

TEST_CASE("a stage whose plan has a U or S keeps them, and is whole at the end of no step if S frees") {
  auto read = [](const char* text) {
    return notation(read_plan_csv(text, "plan.csv",
                                  {.mesh = {2}, .gathers = {.gathers = true, .frees = true, .ahead = 0}})
                        .devices[0]);
  };
  CHECK(read("0UNSHARD,0F0,1F0,1B0,0B0") == "0U 0F0 1U 1F0 1B0 1S 0B0 0S 1G 0G 0A 1A");
  CHECK(read("0U,0F0,0S,0U,1F0,1B0,0B0") == "0U 0F0 0S 0U 1U 1F0 1B0 1S 0B0 0S 1G 0G 0A 1A");
  CHECK(read("0U,1U,0F0,1F0,1B0,0S,1S,0U,0B0,0S") == "0U 1U 0F0 1F0 1B0 0S 1S 0U 0B0 0S 1G 0G 0A 1A");
}

TEST_CASE("stages that keep several weights, or average them, are not sharded") {
  auto steps = make_plan({.kind = schedule_kind::pipedream_2bw, .num_stages = 1, .flush_every = 2});
  steps.devices[0].insert(steps.devices[0].begin(), action{0, unshard, 0});
  CHECK(check_plan(steps) ==
        found_problems{
            "0U occurs in a plan with several optimizer steps, of which a stage keeps two versions of "
            "its whole weights"});
  auto averaging = make_plan({.num_stages = 1, .num_replicas = 2, .averages_weights = true});
  averaging.devices[0].insert(averaging.devices[0].begin(), action{0, unshard, 0});
  CHECK(check_plan(averaging) ==
        found_problems{
            "0U occurs in a plan whose replicas average their weights, which each of them has whole"});
}

TEST_CASE("the first action after a U waits for the shards of the other replicas, and nothing else does") {
  auto of = plan_of("0U,1U,0F0,1F0,1B0,1S,0B0");
  auto closed = [&](std::uint32_t first, std::uint32_t second) {
    return smallest_closed_cut(of, {{{0, first}, {0, second}}});
  };
  CHECK(closed(2, 0) == cut{{{0, 2}, {0, 0}}});  // both Us have given, and the other replica has not
  CHECK(closed(3, 0) == cut{{{0, 3}, {0, 1}}});  // 0F0 needs 0U of both
  CHECK(closed(4, 0) == cut{{{0, 4}, {0, 2}}});
  auto open = find_open_wait(of, {{{0, 3}, {0, 0}}});
  REQUIRE(open);
  CHECK(open->text ==
        "device 0 runs 0F0 of step 0, which reads the shard that 0U gives, but device 1 stops before 0U");
  job_positions seen{of, std::vector<std::optional<device_position>>(2), std::vector<loader_position>(2)};
  seen.devices[0] = {device_activity::waiting_for_tensor, 5, 2, 10.0};
  seen.devices[1] = {device_activity::applying, 4, 10, 9.0};
  auto found = wait_chains(seen);
  REQUIRE(found.size() == 2);  // from each device
  CHECK(found[0].device == 1);
  REQUIRE(found[0].chain.size() == 2);
  CHECK(found[0].chain[0].wanted == action{0, unshard, 0});
}

TEST_CASE("PyTorch's plans with communication are read with their Us and Ss, and written the same") {
  for (const auto* name : {"zb_v_p4_m8_comms.csv", "interleaved_1f1b_p4_v2_m8_comms.csv",
                           "dualpipe_v_p4_m10_comms.csv", "looped_bfs_p4_v2_m8_comms.csv"}) {
    CAPTURE(name);
    auto text = text_of(std::filesystem::path(PYTORCH_PLANS) / name);
    auto read = read_plan_csv(text, name);
    for (int stage = 0; stage < 8; ++stage) {
      const auto& list =
          read.devices[static_cast<std::size_t>(read.device_of_stage[static_cast<std::size_t>(stage)])];
      CHECK(std::ranges::count(list, action{stage, unshard, 0}) == 1);
      CHECK(std::ranges::count(list, action{stage, reshard, 0}) == 1);
    }
    auto without_comment = text.substr(text.find('\n') + 1);
    std::erase(without_comment, '\r');
    // Groups are read one after the other.
    if (without_comment.find("OVERLAP_F_B") == std::string::npos) CHECK(to_csv(read) == without_comment);
    CHECK(read_plan_csv(to_csv(read), name) == read);
    // Weights tied over stages on one rank: sums over replicas do not begin before them.
    plan_csv_options tied{.reductions = {reduction({0, 7}, true), {0, 7}}, .mesh = {2}};
    auto replicas = read_plan_csv(text, name, tied);
    CHECK(to_csv(replicas) == to_csv(read));
    for (auto& list : replicas.devices)
      std::erase_if(list,
                    [](const action& op) { return op.kind == all_reduce || op.kind == reduce_gradient; });
    CHECK(replicas.devices == read.devices);
  }
}

TEST_CASE("sums over replicas begin with the last weight gradients, wherever a file has them") {
  auto read = read_plan_csv("0F0,1F0,1B0,1REDUCE_GRAD,0B0\n", "plan.csv", {.mesh = {2}});
  CHECK(notation(read.devices[0]) == "0F0 1F0 1B0 0B0 1G 0G 0A 1A");
  CHECK(to_csv(plan_of("0U,0F0,0S,0U,0I0,0S,0W0", 1)) ==
        "0UNSHARD,0F0,0RESHARD,0UNSHARD,0I0,0RESHARD,0W0,0REDUCE_GRAD\n");
  CHECK(to_csv(plan_of("0UNSHARD,0F0", 1)) == "0UNSHARD,0F0\n");
  auto refusal = [](const std::string& text, const plan_csv_options& with = {}) {
    try {
      read_plan_csv(text, "plan.csv", with);
    } catch (const bad_input& problem) {
      return std::string(problem.what());
    }
    return std::string("accepted");
  };
  CHECK_THAT(refusal("0F0,0B0,0G\n", {.mesh = {2}}), ContainsSubstring("0G has no place in a file"));
  CHECK_THAT(refusal("0F0,0B0,0Gtp\n", {.mesh = {2, 2}}), ContainsSubstring("0Gtp has no place in a file"));
  CHECK_THAT(refusal("0RESHARD,0F0,0B0\n"),
             ContainsSubstring("0S [line 1 (rank 0), cell 1] comes without a U before it"));
}

TEST_CASE("a plan of forwards that shards its stages keeps nothing for a backward") {
  CHECK(simulate(plan_of("0U,0F0,0F1", 1), {}).peak_activations == std::vector{0});
}

TEST_CASE("actions that take time are drawn, whatever their kind") {
  auto ran = simulate_with(plan_of(fully_sharded), [](const action&) { return action_time{1, 1}; });
  auto text = draw_text(ran, {.columns = 100});
  CHECK_THAT(text, ContainsSubstring("unshard") && ContainsSubstring("reshard"));
  CHECK_THAT(draw_svg(ran, "sharded"), ContainsSubstring(">unshard<") && ContainsSubstring(">reshard<"));
}
