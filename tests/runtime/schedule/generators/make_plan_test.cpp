#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <tuple>

#include "runtime/schedule/drawn_plans.hpp"
#include "runtime/schedule/plan_notation.hpp"
#include "runtime/schedule/plan_runner.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/schedule/simulation/simulate.hpp"
#include "troupe/schedule/text/plan_text.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::testing::notation;
using troupe::testing::refusal;
using enum troupe::schedule_kind;

namespace {

std::vector<troupe::action> of_stage(const std::vector<troupe::action>& actions, int stage) {
  std::vector<troupe::action> own;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(own),
               [stage](const troupe::action& op) { return op.stage == stage; });
  return own;
}

const std::vector<troupe::action>& device_of(int stage, const troupe::plan& made) {
  return made.devices[static_cast<std::size_t>(made.device_of_stage[static_cast<std::size_t>(stage)])];
}

/// Calls `body` with every placement in which each device has a stage.
template <class Body>
void for_every_placement(int num_stages, int num_devices, Body body) {
  std::vector<int> placed(static_cast<std::size_t>(num_stages), 0);
  for (;;) {
    std::vector<bool> has_stage(static_cast<std::size_t>(num_devices), false);
    for (int device : placed) has_stage[static_cast<std::size_t>(device)] = true;
    if (std::ranges::count(has_stage, false) == 0) body(placed);
    auto digit = std::ranges::find_if(placed, [&](int device) { return device + 1 < num_devices; });
    if (digit == placed.end()) return;
    std::fill(placed.begin(), digit, 0);
    ++*digit;
  }
}

}  // namespace

TEST_CASE("GPipe does all forwards, then all backwards in ascending order, then the optimizer's step") {
  auto made = troupe::make_plan({.kind = gpipe, .num_stages = 2, .num_microbatches = 3, .num_devices = 2});
  CHECK(notation(made.devices[0]) == "0F0 0F1 0F2 0B0 0B1 0B2 0A");
  CHECK(notation(made.devices[1]) == "1F0 1F1 1F2 1B0 1B1 1B2 1A");
}

TEST_CASE("1F1B warms up, alternates and drains") {
  auto made =
      troupe::make_plan({.kind = one_f_one_b, .num_stages = 3, .num_microbatches = 4, .num_devices = 3});
  CHECK(notation(made.devices[0]) == "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3 0A");
  CHECK(notation(made.devices[1]) == "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3 1A");
  CHECK(notation(made.devices[2]) == "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2A");
}

TEST_CASE("1F1B with fewer microbatches than stages") {
  auto made =
      troupe::make_plan({.kind = one_f_one_b, .num_stages = 4, .num_microbatches = 2, .num_devices = 4});
  CHECK(notation(made.devices[0]) == "0F0 0F1 0B0 0B1 0A");
  CHECK(notation(made.devices[2]) == "2F0 2F1 2B0 2B1 2A");
  CHECK(notation(made.devices[3]) == "3F0 3B0 3F1 3B1 3A");
}

TEST_CASE("a plan of forwards only has no other actions") {
  auto made =
      troupe::make_plan({.kind = forward_only, .num_stages = 2, .num_microbatches = 2, .num_devices = 2});
  CHECK(notation(made.devices[0]) == "0F0 0F1");
  CHECK(notation(made.devices[1]) == "1F0 1F1");
}

TEST_CASE("stages lie on devices in nearly equal blocks") {
  auto made = troupe::make_plan({.kind = gpipe, .num_stages = 7, .num_microbatches = 1, .num_devices = 3});
  CHECK(made.device_of_stage == std::vector<int>{0, 0, 0, 1, 1, 2, 2});
}

TEST_CASE("one device runs all stages of a microbatch back to back") {
  auto made =
      troupe::make_plan({.kind = one_f_one_b, .num_stages = 2, .num_microbatches = 2, .num_devices = 1});
  CHECK(notation(made.devices[0]) == "0F0 1F0 0F1 1B0 1F1 0B0 1B1 0B1 0A 1A");
}

TEST_CASE("every plan is sound, keeps each stage's order and is not slower than one large stage per device") {
  for (auto kind : {gpipe, one_f_one_b, forward_only, zb_h1, zb_h2}) {
    for (int stages : {1, 2, 3, 4, 5, 8, 11, 16}) {
      for (int microbatches : {1, 2, 3, 4, 7, 8, 32}) {
        auto alone = troupe::make_plan(
            {.kind = kind, .num_stages = stages, .num_microbatches = microbatches, .num_devices = stages});
        for (int devices = 1; devices <= stages; ++devices) {
          CAPTURE(to_string(kind), stages, microbatches, devices);
          auto made = troupe::make_plan(
              {.kind = kind, .num_stages = stages, .num_microbatches = microbatches, .num_devices = devices});
          REQUIRE(troupe::schedule::check_plan(made).empty());
          for (int stage = 0; stage < stages; ++stage) {
            REQUIRE(of_stage(device_of(stage, made), stage) ==
                    alone.devices[static_cast<std::size_t>(stage)]);
          }
          int most_stages = (stages + devices - 1) / devices;
          int per_microbatch = kind == forward_only ? 1 : 3;
          REQUIRE(troupe::simulate(made, {}).makespan <=
                  (microbatches + devices - 1) * most_stages * per_microbatch);
        }
      }
    }
  }
}

TEST_CASE("a stage of a graph runs as many forwards ahead as the longest way to the loss has edges") {
  // 0 -> 1 -> 3 -> 4, and 2, which takes samples too, -> 4; 0 skips to 4.
  auto made =
      troupe::make_plan({.kind = one_f_one_b,
                         .num_stages = 5,
                         .num_microbatches = 4,
                         .num_devices = 5,
                         .edges = {{2, 0, 4, 1}, {0, 0, 1, 0}, {0, 0, 4, 2}, {1, 0, 3, 0}, {3, 0, 4, 0}}});
  CHECK(notation(made.devices[0]) == "0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3 0A");
  CHECK(notation(made.devices[1]) == "1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3 1A");
  CHECK(notation(made.devices[2]) == "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2B3 2A");
  CHECK(notation(made.devices[4]) == "4F0 4B0 4F1 4B1 4F2 4B2 4F3 4B3 4A");
  CHECK(made.edges == std::vector<troupe::schedule::edge>{
                          {0, 0, 1, 0}, {0, 0, 4, 2}, {1, 0, 3, 0}, {2, 0, 4, 1}, {3, 0, 4, 0}});
}

TEST_CASE("stages lie where the options say") {
  auto made = troupe::make_plan({.kind = gpipe,
                                 .num_stages = 4,
                                 .num_microbatches = 1,
                                 .num_devices = 2,
                                 .reductions = {{0, 1, 3}},
                                 .device_of_stage = {1, 0, 1, 0}});
  CHECK(made.device_of_stage == std::vector<int>{1, 0, 1, 0});
  CHECK(made.edges == troupe::schedule::chain_edges(4));
  CHECK(notation(made.devices[0]) == "1F0 3F0 3B0 1B0 1R0 3R0 1A 3A");
  CHECK(notation(made.devices[1]) == "0F0 2F0 2B0 0B0 0R0 0A 2A");
  auto alone =
      troupe::make_plan({.kind = gpipe, .num_stages = 2, .num_devices = 2, .device_of_stage = {1, 0}});
  CHECK(notation(alone.devices[0]) == "1F0 1B0 1A");
}

TEST_CASE("plans of drawn graphs are sound and keep each stage's order in every placement") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    troupe::plan_options options;
    options.kind = troupe::testing::drawn_kind_of_any_placement(random);
    options.num_stages = options.num_devices = 1 + troupe::testing::drawn_below(5, random);
    options.num_microbatches = 1 + troupe::testing::drawn_below(5, random);
    options.edges = troupe::testing::drawn_edges(options.num_stages, random);
    options.reductions = troupe::testing::drawn_reductions(options.kind, options.num_stages, random);
    auto alone = troupe::make_plan(options);
    for (options.num_devices = 1; options.num_devices <= options.num_stages; ++options.num_devices)
      for_every_placement(options.num_stages, options.num_devices, [&](const std::vector<int>& placed) {
        options.device_of_stage = placed;
        auto made = troupe::make_plan(options);
        auto found = troupe::schedule::check_plan(made);
        CAPTURE(seed, troupe::schedule::plan_text(made), found);
        REQUIRE(found.empty());
        REQUIRE(troupe::testing::plan_runner(made).runs_soundly());
        for (int stage = 0; stage < options.num_stages; ++stage)
          REQUIRE(of_stage(device_of(stage, made), stage) == alone.devices[static_cast<std::size_t>(stage)]);
      });
  }
}

TEST_CASE("larger drawn graphs are sound in drawn placements") {
  for (unsigned seed = 0; seed < 1500; ++seed) {
    std::mt19937 random(seed);
    auto options = troupe::testing::drawn_options(16, 12, random);
    auto made = troupe::make_plan(options);
    auto found = troupe::schedule::check_plan(made);
    CAPTURE(seed, troupe::schedule::plan_text(made), found);
    REQUIRE(found.empty());
    REQUIRE(troupe::testing::plan_runner(made).runs_soundly());
  }
}

TEST_CASE("a device never waits while another of its stages could go on, in drawn graphs") {
  using enum troupe::action_kind;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    auto options = troupe::testing::drawn_options(8, 5, random);
    if (troupe::schedule::schedule_of(options.kind).chunked) continue;
    auto made = troupe::make_plan(options);
    CAPTURE(seed, troupe::schedule::plan_text(made));
    auto ran = troupe::simulate(made, {});
    // Times of what makes tensors, and when each of them could have begun.
    std::map<std::tuple<int, troupe::action_kind, int>, double> end;
    for (const auto& device : ran.devices)
      for (const auto& [op, begin, ended] : device) end[{op.stage, op.kind, op.microbatch}] = ended;
    auto ready = [&](const troupe::action& op, double before) {
      for (const auto& [from, output, to, input] : made.edges) {
        if (op.kind == forward && to == op.stage)
          before = std::max(before, end[{from, forward, op.microbatch}]);
        // The one that does not occur has ended at 0.
        if ((op.kind == backward || op.kind == input_gradient) && from == op.stage)
          before = std::max(
              {before, end[{to, backward, op.microbatch}], end[{to, input_gradient, op.microbatch}]});
      }
      return before;
    };
    for (const auto& device : ran.devices)
      for (std::size_t i = 0; i < device.size(); ++i)
        for (int stage = 0; stage < made.num_stages; ++stage) {
          // The next action of the stage, and the end of its last one.
          auto next = std::find_if(device.begin() + static_cast<std::ptrdiff_t>(i), device.end(),
                                   [stage](const auto& done) { return done.op.stage == stage; });
          if (next == device.end() || next->op.kind == reduce_gradient || next->op.kind == apply) continue;
          double before = 0;
          for (auto done = device.begin(); done != next; ++done)
            if (done->op.stage == stage) before = done->end;
          double free = i > 0 ? device[i - 1].end : 0;
          REQUIRE(std::max(free, ready(next->op, before)) >= device[i].begin);
        }
  }
}

TEST_CASE("a plan's forwards are what evaluation runs, with its edges and devices") {
  for (int stages : {1, 2, 5, 8})
    for (int devices = 1; devices <= stages; ++devices) {
      auto training = troupe::make_plan({.kind = one_f_one_b,
                                         .num_stages = stages,
                                         .num_microbatches = 4,
                                         .num_devices = devices,
                                         .reductions = {{0}}});
      CHECK(troupe::forward_projection(training, 7) ==
            troupe::make_plan(
                {.kind = forward_only, .num_stages = stages, .num_microbatches = 7, .num_devices = devices}));
    }
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto training = troupe::make_plan(troupe::testing::drawn_options(6, 4, random));
    auto projected = troupe::forward_projection(training, 3);
    CAPTURE(seed, troupe::schedule::plan_text(projected));
    REQUIRE(projected.kind == forward_only);
    REQUIRE(projected.num_microbatches == 3);
    REQUIRE(projected.edges == training.edges);
    REQUIRE(projected.device_of_stage == training.device_of_stage);
    REQUIRE(projected.reductions.empty());
    REQUIRE(troupe::schedule::check_plan(projected).empty());
  }
  auto training = troupe::make_plan({.num_stages = 2});
  CHECK_THROWS_WITH(troupe::forward_projection(training, 0), ContainsSubstring("0 microbatches"));
  training.edges.clear();
  CHECK_THROWS_WITH(troupe::forward_projection(training, 1), ContainsSubstring("no edge leads from stage 0"));
}

TEST_CASE("the same options make the same plan") {
  troupe::plan_options options{
      .kind = one_f_one_b, .num_stages = 9, .num_microbatches = 13, .num_devices = 4};
  CHECK(troupe::make_plan(options) == troupe::make_plan(options));
}

TEST_CASE("impossible options are refused with what to change") {
  CHECK_THAT(refusal({.num_stages = 0}), ContainsSubstring("0 stages") && ContainsSubstring("at least 1"));
  CHECK_THAT(refusal({.num_microbatches = -2}),
             ContainsSubstring("-2 microbatches") && ContainsSubstring("at least 1"));
  CHECK_THAT(refusal({.num_devices = 0}), ContainsSubstring("0 devices") && ContainsSubstring("at least 1"));
  CHECK_THAT(refusal({.num_stages = 2, .num_devices = 3}),
             ContainsSubstring("3 devices for 2 stages") && ContainsSubstring("at most as many"));
  CHECK_THAT(refusal({.num_stages = 2'000'000'000, .num_microbatches = 2'000'000'000}),
             ContainsSubstring("fewer"));
  CHECK_THAT(refusal({.num_stages = 3, .num_devices = 2, .device_of_stage = {0, 1}}),
             ContainsSubstring("for 2 stages") && ContainsSubstring("Say it for all 3"));
  CHECK_THAT(refusal({.num_stages = 3, .num_devices = 2, .device_of_stage = {0, 2, 1}}),
             ContainsSubstring("stage 1 is on device 2") && ContainsSubstring("from 0 to 1"));
  CHECK_THAT(refusal({.num_stages = 3, .num_devices = 2, .device_of_stage = {0, -1, 1}}),
             ContainsSubstring("stage 1 is on device -1"));
  CHECK_THAT(refusal({.num_stages = 3, .num_devices = 2, .device_of_stage = {1, 1, 1}}),
             ContainsSubstring("device 0 has no stage") && ContainsSubstring("fewer devices"));
  CHECK_THAT(refusal({.num_stages = 3, .edges = {{0, 0, 2, 0}}}),
             ContainsSubstring("no edge leads from stage 1"));
  CHECK_THAT(refusal({.num_stages = 2,
                      .num_microbatches = 1 << 19,
                      .edges = {{0, 0, 1, 0}, {0, 0, 1, 1}, {0, 0, 1, 2}}}),
             ContainsSubstring("3 edges times 524288 microbatches") && ContainsSubstring("fewer"));
}
