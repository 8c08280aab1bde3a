// PipeDream-2BW: plans with several optimizer steps between two flushes.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "runtime/schedule/drawn_plans.hpp"
#include "runtime/schedule/plan_notation.hpp"
#include "runtime/schedule/simulation/reference_simulation.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/simulation/best_plan.hpp"
#include "troupe/schedule/simulation/closed_form.hpp"
#include "troupe/schedule/text/plan_csv.hpp"
#include "troupe/schedule/text/plan_text.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using troupe::action;
using troupe::action_kind;
using troupe::plan;
using troupe::testing::notation;
using findings = std::vector<std::string>;
using enum troupe::schedule_kind;

namespace {

plan made(int stages, int microbatches, int flush_every, int devices = 0) {
  return troupe::make_plan({.kind = pipedream_2bw,
                            .num_stages = stages,
                            .num_microbatches = microbatches,
                            .num_devices = devices == 0 ? stages : devices,
                            .flush_every = flush_every});
}

/// Follows each stage's buffers: is every gradient computed with the weights with which its forward ran,
/// which are those of one step before, and is the buffer that an A overwrites needed by nobody? Each A makes
/// version step + 1 in the buffer that does not hold version `step`.
bool has_right_versions(const plan& run) {
  for (int stage = 0; stage < run.num_stages; ++stage) {
    std::vector<int> buffers = {0, -1};  // versions
    int newest = 0;
    for (const auto& op :
         run.devices[static_cast<std::size_t>(run.device_of_stage[static_cast<std::size_t>(stage)])]) {
      if (op.stage != stage || op.kind == action_kind::reduce_gradient) continue;
      if (op.kind == action_kind::apply) {
        if (op.microbatch != newest) return false;
        auto& overwritten = buffers[0] == newest ? buffers[1] : buffers[0];
        overwritten = ++newest;
        continue;
      }
      int step = op.microbatch / run.microbatches_per_step();
      bool adds = op.kind == action_kind::backward || op.kind == action_kind::weight_gradient;
      if (adds && step != newest) return false;  // into the sum of another step
      if (std::ranges::count(buffers, std::max(step - 1, 0)) == 0) return false;
    }
    if (newest != run.flush_every) return false;
  }
  return true;
}

findings changed(plan broken, const std::function<void(plan&)>& change) {
  change(broken);
  return troupe::schedule::check_plan(broken);
}

void move_action(plan& broken, const std::string& name, const std::string& before) {
  for (auto& device : broken.devices) {
    auto from = std::ranges::find(device, name, [](const action& op) { return to_string(op); });
    if (from == device.end()) continue;
    auto op = *from;
    device.erase(from);
    device.insert(std::ranges::find(device, before, [](const action& each) { return to_string(each); }), op);
    return;
  }
}

}  // namespace

TEST_CASE("PipeDream-2BW is 1F1B through all steps, with an A behind the last backward of each") {
  auto drawn = made(3, 2, 3);
  CHECK(drawn.num_microbatches == 6);
  CHECK(notation(drawn.devices[0]) == "0F0 0F1 0F2 0B0 0F3 0B1 0A 0F4 0B2 0F5 0B3 0A1 0B4 0B5 0A2");
  CHECK(notation(drawn.devices[1]) == "1F0 1F1 1B0 1F2 1B1 1A 1F3 1B2 1F4 1B3 1A1 1F5 1B4 1B5 1A2");
  CHECK(notation(drawn.devices[2]) == "2F0 2B0 2F1 2B1 2A 2F2 2B2 2F3 2B3 2A1 2F4 2B4 2F5 2B5 2A2");
  CHECK(troupe::schedule::plan_text(drawn).starts_with(
      "pipedream_2bw, 3 stages, 6 microbatches, 3 optimizer steps\n"));
}

TEST_CASE("with one step between flushes PipeDream-2BW does what 1F1B does") {
  for (int stages : {1, 2, 4})
    for (int microbatches : {1, 2, 5})
      for (int devices = 1; devices <= stages; ++devices) {
        auto synchronous = troupe::make_plan({.kind = one_f_one_b,
                                              .num_stages = stages,
                                              .num_microbatches = microbatches,
                                              .num_devices = devices});
        CHECK(made(stages, microbatches, 1, devices).devices == synchronous.devices);
      }
}

TEST_CASE("each step's microbatches find the weights of the step before, with any graph and devices") {
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    using troupe::testing::drawn_below;
    int stages = 1 + drawn_below(6, random);
    int devices = 1 + drawn_below(stages, random);
    auto reductions = troupe::testing::drawn_reductions(pipedream_2bw, stages, random);
    auto drawn =
        troupe::make_plan({.kind = pipedream_2bw,
                           .num_stages = stages,
                           .num_microbatches = 1 + drawn_below(6, random),
                           .num_devices = devices,
                           .reductions = reductions,
                           .edges = troupe::testing::drawn_edges(stages, random),
                           .device_of_stage = troupe::testing::drawn_placement(stages, devices, random),
                           .flush_every = 1 + drawn_below(4, random)});
    CAPTURE(seed, troupe::schedule::plan_text(drawn));
    REQUIRE(troupe::schedule::check_plan(drawn) == findings{});
    REQUIRE(has_right_versions(drawn));
    // As the circle's absence is checked by sorting, run it too.
    auto ran = troupe::testing::reference_simulation(drawn, {.reduction = 0.5, .apply = 0.25});
    for (std::size_t device = 0; device < drawn.devices.size(); ++device)
      REQUIRE(ran.devices[device].size() == drawn.devices[device].size());
  }
}

TEST_CASE("PipeDream-2BW idles (p-1)(f+b+w) from flush to flush, and keeps what 1F1B keeps") {
  std::mt19937 random(11);
  auto drawn = [&random] { return std::uniform_real_distribution<double>(0.1, 3)(random); };
  for (int p = 2; p <= 16; ++p)
    for (int m : {p - 1, p, 2 * p + 1})
      for (int steps : {1, 2, 5}) {
        troupe::action_costs costs{.forward = drawn(), .input_gradient = drawn(), .weight_gradient = drawn()};
        CAPTURE(p, m, steps, costs.forward, costs.input_gradient, costs.weight_gradient);
        auto run = made(p, m, steps);
        auto ran = troupe::simulate(run, costs);
        auto other = troupe::testing::reference_simulation(run, costs);
        REQUIRE_THAT(ran.makespan, WithinRel(other.makespan, 1e-12));
        REQUIRE(ran.peak_activations == other.peak_activations);
        auto expected = troupe::schedule::closed_form_of(pipedream_2bw, {p, 1, m * steps}, costs);
        REQUIRE_THAT(ran.makespan, WithinRel(expected.makespan, 1e-12));
        double idle = (p - 1) * (costs.forward + costs.input_gradient + costs.weight_gradient);
        for (int stage = 0; stage < p; ++stage) {
          REQUIRE(std::abs(ran.idle[static_cast<std::size_t>(stage)] - idle) <= 1e-9 * ran.makespan);
          REQUIRE(ran.peak_activations[static_cast<std::size_t>(stage)] == std::min(m * steps, p - stage));
        }
        REQUIRE(expected.peak_activations == std::min(m * steps, p));
      }
}

TEST_CASE("with fewer microbatches than stages behind it a stage waits for its weights") {
  auto drawn = made(4, 1, 4);
  CHECK(notation(drawn.devices[0]) == "0F0 0F1 0B0 0A 0F2 0B1 0A1 0F3 0B2 0A2 0B3 0A3");
  CHECK(has_right_versions(drawn));
  CHECK(troupe::simulate(drawn, {}).idle[0] > 9);
}

TEST_CASE("a version of the weights that is overwritten too early, or not there yet, is named") {
  auto sound = made(2, 2, 3);
  REQUIRE(troupe::schedule::check_plan(sound) == findings{});
  // 0F0 0F1 0B0 0F2 0B1 0A 0F3 0B2 0F4 0B3 0A1 0F5 0B4 0B5 0A2
  CHECK(changed(sound, [](plan& broken) { move_action(broken, "0A", "0B1"); }) ==
        findings{
            "device 0 does 0B1 after 0A, but it belongs to optimizer step 0, whose weights are overwritten "
            "there"});
  CHECK(changed(sound, [](plan& broken) {
          move_action(broken, "0F3", "0A");
          move_action(broken, "0F4", "0A");
        }) == findings{"device 0 does 0F4 before 0A, but optimizer step 2 uses the weights made there"});
  CHECK(changed(sound, [](plan& broken) { move_action(broken, "0A", "0F4"); }) ==
        findings{
            "device 0 does 0B2 before 0A, but its gradient belongs to optimizer step 1 and would be added to "
            "those of the one before"});
  CHECK(changed(sound, [](plan& broken) { move_action(broken, "1F2", "1A"); }) ==
        findings{"device 1 does 1F2 before 1A, but the loss of optimizer step 1 is scaled as the step before "
                 "leaves it"});
  auto text = changed(sound, [](plan& broken) { move_action(broken, "0A1", "0A"); });
  CHECK(text.front() == "device 0 does 0A1 before 0A, but a stage's optimizer steps come in order");
  CHECK(changed(sound, [](plan& broken) { broken.devices[1].pop_back(); }) == findings{"1A2 is missing"});
  CHECK(changed(sound, [](plan& broken) { broken.devices[1].back().microbatch = 7; }) ==
        findings{"1A7 is of no optimizer step: the plan has 3", "1A2 is missing"});
  CHECK(changed(sound, [](plan& broken) { broken.flush_every = 4; }) ==
        findings{"the plan has 6 microbatches for 4 optimizer steps, which have equally many"});
  CHECK(changed(sound, [](plan& broken) { broken.kind = gpipe; }) ==
        findings{"the plan has 3 optimizer steps, but those of kind gpipe have 1"});
}

TEST_CASE("reductions belong to the optimizer step that they come before") {
  auto sound = troupe::make_plan({.kind = pipedream_2bw,
                                  .num_stages = 2,
                                  .num_microbatches = 1,
                                  .num_devices = 2,
                                  .reductions = {{0, 1}, {0}},
                                  .flush_every = 2});
  CHECK(sound.reductions == std::vector<troupe::schedule::reduction>{{0, 1}, {0}, {0, 1}, {0}});
  CHECK(notation(sound.devices[0]) == "0F0 0F1 0B0 0R0 0R1 0A 0B1 0R2 0R3 0A1");
  CHECK(notation(sound.devices[1]) == "1F0 1B0 1R0 1A 1F1 1B1 1R2 1A1");
  CHECK(troupe::schedule::check_plan(sound) == findings{});
  auto swapped = changed(sound, [](plan& broken) {
    std::swap(broken.devices[0][3].microbatch, broken.devices[0][7].microbatch);
  });
  CHECK(std::ranges::count(swapped, "0R2 comes before 0A, but is a reduction of optimizer step 1") == 1);
  CHECK(changed(sound, [](plan& broken) { broken.reductions.pop_back(); }) ==
        findings{"the plan has 3 reductions for 2 optimizer steps, which have the same ones"});
}

TEST_CASE("a plan with several optimizer steps is read from the file that it was written to") {
  for (int devices : {1, 2, 3}) {
    auto written = made(3, 2, 3, devices);
    auto read = troupe::schedule::read_plan_csv(troupe::schedule::to_csv(written), "plan.csv");
    CHECK(read.kind == custom);
    CHECK(read.flush_every == 3);
    CHECK(read.devices == written.devices);
  }
  auto combined = troupe::schedule::read_plan_csv("0F0,0F1,0B0,0A,0B1,0A1\n,1F0,1B0,1A,1F1,1B1,1A1\n",
                                                  "plan.csv", {.reductions = {{0, 1}}});
  CHECK(notation(combined.devices[0]) == "0F0 0F1 0B0 0R0 0A 0B1 0R1 0A1");
  CHECK_THROWS_WITH(troupe::schedule::read_plan_csv("0F0,0B0,0A\n", "plan.csv"),
                    ContainsSubstring("line 1 (rank 0), cell 3: 0A has no place in a file"));
  CHECK_THROWS_WITH(troupe::schedule::read_plan_csv("0F0,0B0,0A,0F1,0B1\n", "plan.csv"),
                    ContainsSubstring("0A has no place in a file"));
  CHECK_THROWS_WITH(troupe::schedule::read_plan_csv("0F0,0B0,0F1,0B1,0A1\n", "plan.csv"),
                    ContainsSubstring("0A is missing from line 1 (rank 0)"));
}

TEST_CASE("what cannot be flushed so is refused, and --best never chooses it") {
  using troupe::testing::refusal;
  CHECK_THAT(refusal({.kind = one_f_one_b, .flush_every = 2}),
             ContainsSubstring("1f1b flushes after every optimizer step, not after 2") &&
                 ContainsSubstring("pipedream_2bw"));
  CHECK_THAT(refusal({.kind = pipedream_2bw, .flush_every = 0}), ContainsSubstring("Give at least 1"));
  CHECK_THAT(refusal({.kind = pipedream_2bw, .num_microbatches = 1 << 10, .flush_every = 1 << 11}),
             ContainsSubstring("Use fewer microbatches"));
  troupe::schedule::plan_search search;
  search.num_devices = 4;
  search.num_microbatches = {8};
  CHECK(troupe::schedule::best_plan(search).made.kind != pipedream_2bw);
  search.kinds = {pipedream_2bw};
  CHECK_THROWS_WITH(troupe::schedule::best_plan(search), ContainsSubstring("without --best"));
}

TEST_CASE("evaluation runs the forwards of a plan with several optimizer steps") {
  auto projected = troupe::forward_projection(made(2, 2, 3), 4);
  CHECK(projected.flush_every == 1);
  CHECK(notation(projected.devices[1]) == "1F0 1F1 1F2 1F3");
}
