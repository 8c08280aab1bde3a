#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <map>
#include <set>

#include "runtime/schedule/drawn_plans.hpp"
#include "runtime/schedule/plan_notation.hpp"
#include "runtime/schedule/plan_runner.hpp"
#include "runtime/schedule/simulation/reference_simulation.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/schedule/text/plan_text.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using troupe::testing::notation;
using troupe::testing::refusal;
using enum troupe::schedule_kind;

namespace {

troupe::plan plan_of(troupe::schedule_kind kind, int devices, int chunks, int microbatches) {
  return troupe::make_plan({.kind = kind,
                            .num_stages = devices * chunks,
                            .num_microbatches = microbatches,
                            .num_devices = devices});
}

/// The kinds of actions of a plan, in the order of action_kind: "FBA".
std::string letters(const troupe::plan& made) {
  std::set<troupe::action_kind> seen;
  for (const auto& device : made.devices)
    for (const auto& op : device) seen.insert(op.kind);
  std::string text;
  for (auto kind : seen) text += std::string("FBIWRA")[static_cast<std::size_t>(kind)];
  return text;
}

/// Calls `body(row, p, v, m)` for every kind, p in 2..16, the m in p..8p that it allows, v in 1..4 where it
/// may have several chunks. Of large p some m.
template <class Body>
void for_every_kind(Body body) {
  for (const auto& row : troupe::schedule::schedule_table())
    for (int p = 2; p <= 16; ++p)
      for (int v = 1; v <= 4; ++v) {
        bool is_allowed =
            !row.chunked ? v == 1 : row.chunked->num_chunks == 0 || row.chunked->num_chunks == v;
        if (!is_allowed) continue;
        std::set<int> numbers = {p, p + 1, 2 * p - 1, 2 * p, 2 * p + 1, 3 * p, 8 * p};
        for (int m = p; p <= 5 && m <= 8 * p; ++m) numbers.insert(m);
        for (int m : numbers) {
          bool has_objection =
              row.chunked && row.chunked->objection && !row.chunked->objection({p, v, m}).empty();
          if (!has_objection) body(row, p, v, m);
        }
      }
}

}  // namespace

TEST_CASE("ZB-H1 puts W where a stage would wait for the next gradient") {
  auto made = plan_of(zb_h1, 3, 1, 4);
  CHECK(notation(made.devices[0]) == "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3 0A");
  CHECK(notation(made.devices[1]) == "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3 1A");
  CHECK(notation(made.devices[2]) == "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3 2A");
}

TEST_CASE("ZB-H2 runs twice as many forwards ahead") {
  auto made = plan_of(zb_h2, 2, 1, 4);
  CHECK(notation(made.devices[0]) == "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3 0A");
  CHECK(notation(made.devices[1]) == "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3 1A");
}

TEST_CASE("interleaved 1F1B goes through all chunks of a device with as many microbatches as devices") {
  auto made = plan_of(interleaved_1f1b, 2, 2, 4);
  CHECK(made.device_of_stage == std::vector<int>{0, 1, 0, 1});
  CHECK(notation(made.devices[0]) == "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3 0A 2A");
  CHECK(notation(made.devices[1]) == "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3 1A 3A");
}

TEST_CASE("interleaved 1F1B with one chunk a device runs further ahead than 1F1B") {
  CHECK(notation(plan_of(interleaved_1f1b, 2, 1, 4).devices[0]) == "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3 0A");
}

TEST_CASE("looped BFS runs all microbatches of a stage before those of the device's next") {
  auto made = plan_of(looped_bfs, 2, 2, 3);
  CHECK(made.device_of_stage == std::vector<int>{0, 1, 0, 1});
  CHECK(notation(made.devices[1]) == "1F0 1F1 1F2 3F0 3F1 3F2 3B0 3B1 3B2 1B0 1B1 1B2 1A 3A");
  CHECK(notation(plan_of(looped_bfs, 1, 3, 1).devices[0]) == "0F0 1F0 2F0 2B0 1B0 0B0 0A 1A 2A");
}

TEST_CASE("in ZB-V and DualPipeV the first device has the first and the last stage") {
  for (auto kind : {zb_v, dualpipe_v})
    CHECK(plan_of(kind, 3, 2, 6).device_of_stage == std::vector<int>{0, 1, 2, 2, 1, 0});
}

TEST_CASE("ZB-V") {
  auto made = plan_of(zb_v, 2, 2, 4);
  CHECK(notation(made.devices[0]) ==
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3 0A "
        "3A");
  CHECK(notation(made.devices[1]) ==
        "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 1W3 1A "
        "2A");
}

TEST_CASE("DualPipeV") {
  auto made = plan_of(dualpipe_v, 2, 2, 4);
  CHECK(notation(made.devices[0]) ==
        "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3 3B1 3F2 0B0 3B2 3F3 0B1 3B3 0I2 0W2 0I3 0W3 0A 3A");
  CHECK(notation(made.devices[1]) ==
        "1F0 2F0 1F1 2F1 1F2 2B0 2F2 1B0 1F3 2B1 2F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3 1A 2A");
}

TEST_CASE("every kind has the actions that its table row says, and runs to the end") {
  for_every_kind([](const troupe::schedule::schedule_row& row, int p, int v, int m) {
    CAPTURE(row.name, p, v, m);
    auto made = plan_of(row.kind, p, v, m);
    REQUIRE(troupe::schedule::check_plan(made) == std::vector<std::string>{});
    REQUIRE(troupe::testing::plan_runner(made).runs_soundly());
    bool is_zero_bubble = row.kind == zb_h1 || row.kind == zb_h2 || row.kind == zb_v;
    std::string expected = is_zero_bubble ? "FIWA" : row.kind == dualpipe_v ? "FBIWA" : "FBA";
    REQUIRE(letters(made) == (row.kind == forward_only ? "F" : expected));
  });
}

namespace {

void check_alike(const troupe::plan& run, const troupe::timeline& ran, const troupe::timeline& expected) {
  REQUIRE_THAT(ran.makespan, WithinRel(expected.makespan, 1e-12));
  for (std::size_t device = 0; device < run.devices.size(); ++device) {
    REQUIRE(expected.devices[device].size() == run.devices[device].size());
    REQUIRE(std::abs(ran.idle[device] - expected.idle[device]) <= 1e-9 * ran.makespan);
    if (run.kind != forward_only) REQUIRE(ran.peak_activations[device] == expected.peak_activations[device]);
    for (std::size_t i = 0; i < run.devices[device].size(); ++i)
      REQUIRE(std::abs(ran.devices[device][i].begin - expected.devices[device][i].begin) <=
              1e-9 * ran.makespan);
  }
}

}  // namespace

TEST_CASE("the simulator agrees with another simulation, with drawn costs", "[many]") {
  std::mt19937 random(1);
  auto drawn_cost = [&random] { return std::uniform_real_distribution<double>(0, 3)(random); };
  for_every_kind([&](const troupe::schedule::schedule_row& row, int p, int v, int m) {
    if (m > 3 * p && p > 5) return;
    CAPTURE(row.name, p, v, m);
    auto made = plan_of(row.kind, p, v, m);
    troupe::action_costs costs{.forward = drawn_cost(),
                               .input_gradient = drawn_cost(),
                               .weight_gradient = drawn_cost(),
                               .communication = troupe::testing::drawn_below(2, random) * drawn_cost(),
                               .apply = drawn_cost()};
    check_alike(made, troupe::simulate(made, costs), troupe::testing::reference_simulation(made, costs));
  });
}

TEST_CASE("the simulator agrees with another simulation, with a drawn cost for each action", "[many]") {
  std::mt19937 random(2);
  auto drawn_cost = [&random] { return std::uniform_real_distribution<double>(0, 3)(random); };
  for_every_kind([&](const troupe::schedule::schedule_row& row, int p, int v, int m) {
    if (m > 2 * p && p > 4) return;
    CAPTURE(row.name, p, v, m);
    auto made = plan_of(row.kind, p, v, m);
    std::map<std::string, troupe::action_time> times;
    auto time_of = [&](const troupe::action& op) {
      auto [found, is_new] = times.try_emplace(troupe::to_string(op));
      if (is_new) {
        auto first = drawn_cost();
        bool is_split = op.kind == troupe::action_kind::backward;
        found->second = {first + (is_split ? drawn_cost() : 0), first};
      }
      return found->second;
    };
    double communication = troupe::testing::drawn_below(2, random) * drawn_cost();
    check_alike(made, troupe::simulate_with(made, time_of, communication),
                troupe::testing::reference_simulation(made, time_of, communication));
  });
}

TEST_CASE("what is sound for a chain is sound for every graph with as many stages") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    int devices = 1 + troupe::testing::drawn_below(4, random);
    for (auto kind : {interleaved_1f1b, zb_v, dualpipe_v, looped_bfs}) {
      auto made = troupe::make_plan({.kind = kind,
                                     .num_stages = 2 * devices,
                                     .num_microbatches = 2 * devices,
                                     .num_devices = devices,
                                     .edges = troupe::testing::drawn_edges(2 * devices, random)});
      CAPTURE(seed, troupe::schedule::plan_text(made));
      REQUIRE(troupe::schedule::check_plan(made).empty());
    }
  }
}

TEST_CASE("ZB-V runs with fewer microbatches than fill it") {
  for (int p : {1, 2, 3, 8})
    for (int m = 1; m < 2 * p; ++m) CHECK(troupe::schedule::check_plan(plan_of(zb_v, p, 2, m)).empty());
}

TEST_CASE(
    "numbers of stages and microbatches that a kind does not allow are refused with those that it does") {
  CHECK_THAT(refusal({.kind = interleaved_1f1b, .num_stages = 8, .num_microbatches = 10, .num_devices = 4}),
             ContainsSubstring("interleaved_1f1b") && ContainsSubstring("Use 8 or 12, not 10"));
  CHECK_THAT(refusal({.kind = interleaved_1f1b, .num_stages = 8, .num_microbatches = 3, .num_devices = 4}),
             ContainsSubstring("Use 4, not 3"));
  CHECK_THAT(refusal({.kind = interleaved_1f1b, .num_stages = 6, .num_microbatches = 8, .num_devices = 4}),
             ContainsSubstring("4 devices share 6") && ContainsSubstring("Use 4 or 8 stages"));
  CHECK_THAT(
      refusal({.kind = zb_v, .num_stages = 4, .num_microbatches = 8, .num_devices = 4}),
      ContainsSubstring("2 stages, but there are 4 for 4 devices") && ContainsSubstring("Use 8 stages"));
  CHECK_THAT(refusal({.kind = dualpipe_v, .num_stages = 8, .num_microbatches = 7, .num_devices = 4}),
             ContainsSubstring("at least as many microbatches as stages. Use 8 or more, not 7"));
  CHECK_THAT(refusal({.kind = custom}), ContainsSubstring("plan file"));
}

TEST_CASE("a placement that contradicts the kind's is refused") {
  troupe::plan_options options{.kind = zb_v, .num_stages = 4, .num_microbatches = 4, .num_devices = 2};
  options.device_of_stage = {0, 1, 1, 0};
  CHECK(refusal(options) == "accepted");
  options.device_of_stage = {0, 1, 0, 1};
  CHECK_THAT(refusal(options), ContainsSubstring("zb_v runs stage 2 on device 1") &&
                                   ContainsSubstring("says 0") &&
                                   ContainsSubstring("Leave device_of_stage empty"));
  options.kind = interleaved_1f1b;
  CHECK(refusal(options) == "accepted");
}

TEST_CASE("stages without a number get two a device where the kind places them") {
  CHECK(troupe::usual_chunks(zb_v) == 2);
  CHECK(troupe::usual_chunks(interleaved_1f1b) == 2);
  CHECK(troupe::usual_chunks(zb_h1) == 1);
  CHECK(troupe::devices_for(zb_v, 8, 16) == 4);
  CHECK(troupe::devices_for(zb_v, 8, 2) == 2);
  CHECK(troupe::devices_for(zb_v, 3, 4) == 2);
  CHECK(troupe::devices_for(interleaved_1f1b, 8, 4) == 4);
  CHECK(troupe::devices_for(gpipe, 3, 8) == 3);
}
