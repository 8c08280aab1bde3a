#include "troupe/schedule/simulation/simulate.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <tuple>

#include "runtime/schedule/drawn_plans.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using enum troupe::schedule_kind;

namespace {

const std::vector<troupe::action_costs> some_costs = {
    {1, 1, 1, 0}, {5, 10, 0, 0}, {1, 2, 0.5, 0}, {0.7, 0.3, 1.9, 0}, {3, 0.1, 0.1, 0}, {1e-3, 2e-3, 3e-3, 0}};

troupe::plan plan_of(troupe::schedule_kind kind, int num_stages, int num_microbatches) {
  return troupe::make_plan({.kind = kind,
                            .num_stages = num_stages,
                            .num_microbatches = num_microbatches,
                            .num_devices = num_stages});
}

/// Calls `body(p, m, costs)` for many numbers of stages and microbatches and many costs.
template <class Body>
void for_many_sizes(Body body) {
  for (int p : {1, 2, 3, 4, 7, 8, 16})
    for (int m : {1, 2, 3, 4, 5, 8, 16, 33})
      for (const auto& costs : some_costs) body(p, m, costs);
}

}  // namespace

TEST_CASE("GPipe idles (p-1)(f+B) on every device and keeps all m microbatches") {
  for_many_sizes([](int p, int m, const troupe::action_costs& costs) {
    CAPTURE(p, m, costs.forward, costs.input_gradient, costs.weight_gradient);
    auto ran = troupe::simulate(plan_of(gpipe, p, m), costs);
    double round = costs.forward + costs.input_gradient + costs.weight_gradient;
    REQUIRE_THAT(ran.makespan, WithinRel((m + p - 1) * round, 1e-12));
    for (double idle : ran.idle) REQUIRE(std::abs(idle - (p - 1) * round) <= 1e-12 * ran.makespan);
    REQUIRE(ran.peak_activations == std::vector<int>(static_cast<std::size_t>(p), m));
  });
}

TEST_CASE("1F1B idles (p-1)(f+B) on every device and keeps min(m, p-s) microbatches at stage s") {
  for_many_sizes([](int p, int m, const troupe::action_costs& costs) {
    CAPTURE(p, m, costs.forward, costs.input_gradient, costs.weight_gradient);
    auto ran = troupe::simulate(plan_of(one_f_one_b, p, m), costs);
    double round = costs.forward + costs.input_gradient + costs.weight_gradient;
    REQUIRE_THAT(ran.makespan, WithinRel((m + p - 1) * round, 1e-12));
    for (double idle : ran.idle) REQUIRE(std::abs(idle - (p - 1) * round) <= 1e-12 * ran.makespan);
    for (int stage = 0; stage < p; ++stage)
      REQUIRE(ran.peak_activations[static_cast<std::size_t>(stage)] == std::min(m, p - stage));
  });
}

TEST_CASE("forwards only idle (p-1)f and keep nothing") {
  for_many_sizes([](int p, int m, const troupe::action_costs& costs) {
    auto ran = troupe::simulate(plan_of(forward_only, p, m), costs);
    for (double idle : ran.idle) REQUIRE(std::abs(idle - (p - 1) * costs.forward) <= 1e-12 * ran.makespan);
    REQUIRE(ran.peak_activations == std::vector<int>(static_cast<std::size_t>(p), 0));
  });
}

// Each stage does in the schedule of a graph what the stage at its distance from the loss does in that of a
// chain, and the stages of the longest way are such a chain.
TEST_CASE("a graph takes as long as the chain of its longest way, and a stage keeps what its distance says") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    int stages = 1 + troupe::testing::drawn_below(8, random);
    int m = 1 + troupe::testing::drawn_below(8, random);
    const auto& costs = some_costs[troupe::testing::drawn_index(some_costs.size(), random)];
    troupe::plan_options options{.num_stages = stages, .num_microbatches = m, .num_devices = stages};
    options.edges = troupe::testing::drawn_edges(stages, random);
    troupe::schedule::stage_graph graph(stages, options.edges);
    int longest = 0;
    for (int stage = 0; stage < stages; ++stage) longest = std::max(longest, graph.distance_to_loss(stage));
    double round = costs.forward + costs.input_gradient + costs.weight_gradient;
    for (auto kind : {gpipe, one_f_one_b, forward_only}) {
      CAPTURE(seed, to_string(kind), stages, m, longest);
      options.kind = kind;
      auto ran = troupe::simulate(troupe::make_plan(options), costs);
      double one = kind == forward_only ? costs.forward : round;
      REQUIRE_THAT(ran.makespan, WithinRel((m + longest) * one, 1e-12));
      for (double idle : ran.idle) REQUIRE(std::abs(idle - longest * one) <= 1e-12 * ran.makespan);
      for (int stage = 0; stage < stages; ++stage) {
        int kept = kind == gpipe ? m : std::min(m, graph.distance_to_loss(stage) + 1);
        REQUIRE(ran.peak_activations[static_cast<std::size_t>(stage)] == (kind == forward_only ? 0 : kept));
      }
    }
  }
}

TEST_CASE("branches run at the same time, and their sum waits for the slower way") {
  auto ran =
      troupe::simulate(troupe::make_plan({.kind = gpipe,
                                          .num_stages = 4,
                                          .num_devices = 4,
                                          .edges = {{0, 0, 1, 0}, {0, 0, 2, 0}, {1, 0, 3, 0}, {2, 0, 3, 1}}}),
                       {.forward = 1, .input_gradient = 2, .weight_gradient = 0, .communication = 10});
  CHECK(ran.devices[1][0].begin == 11);
  CHECK(ran.devices[2][0].begin == 11);
  CHECK(ran.devices[3][0].begin == 22);
  CHECK(ran.devices[1][1].begin == 35);
  CHECK(ran.devices[0][1].begin == 47);
  CHECK(ran.makespan == 49);
}

TEST_CASE("the optimizer's step takes the time that it costs, by default none, and keeps no activations") {
  auto made =
      troupe::make_plan({.kind = one_f_one_b, .num_stages = 4, .num_microbatches = 8, .num_devices = 2});
  auto free = troupe::simulate(made, {});
  auto costly = troupe::simulate(made, {.apply = 5});
  for (std::size_t device = 0; device < 2; ++device) {
    const auto& actions = costly.devices[device];
    for (std::size_t i = 0; i + 2 < actions.size(); ++i)
      CHECK(actions[i].begin == free.devices[device][i].begin);
    CHECK(to_string(actions.back().op) == std::to_string(2 * device + 1) + "A");
    CHECK(actions.back().end == free.devices[device].back().end + 10);
    CHECK(actions.back().begin == (actions.end() - 2)->end);
  }
  CHECK(costly.makespan == free.makespan + 10);
  CHECK(costly.peak_activations == free.peak_activations);
  CHECK(costly.idle == free.idle);
}

TEST_CASE("each action begins when its device is free and its inputs are there") {
  auto ran =
      troupe::simulate(plan_of(one_f_one_b, 2, 2), {.forward = 1, .input_gradient = 2, .weight_gradient = 3});
  auto shown = [](const std::vector<troupe::timed_action>& device) {
    std::vector<std::tuple<std::string, double, double>> list;
    for (const auto& done : device) list.emplace_back(to_string(done.op), done.begin, done.end);
    return list;
  };
  using expected = std::vector<std::tuple<std::string, double, double>>;
  CHECK(shown(ran.devices[0]) ==
        expected{{"0F0", 0, 1}, {"0F1", 1, 2}, {"0B0", 7, 12}, {"0B1", 13, 18}, {"0A", 18, 18}});
  CHECK(shown(ran.devices[1]) ==
        expected{{"1F0", 1, 2}, {"1B0", 2, 7}, {"1F1", 7, 8}, {"1B1", 8, 13}, {"1A", 13, 13}});
  CHECK(ran.makespan == 18);
  CHECK(ran.idle == std::vector<double>{6, 6});
}

TEST_CASE("communication delays a receiver on another device, not the sender and not a stage on its device") {
  troupe::action_costs costs{.forward = 1, .input_gradient = 1, .weight_gradient = 0, .communication = 10};
  auto apart = troupe::simulate(plan_of(gpipe, 2, 2), costs);
  CHECK(apart.devices[0][1].begin == 1);
  CHECK(apart.devices[1][0].begin == 11);
  CHECK(apart.devices[1][1].begin == 12);
  CHECK(apart.devices[0][2].begin == 24);
  auto together =
      troupe::simulate(troupe::make_plan({.kind = gpipe, .num_stages = 2, .num_microbatches = 2}), costs);
  CHECK(together.makespan == 8);
}

TEST_CASE("a split backward lets the stage before go on, and keeps activations until the weight gradient") {
  using enum troupe::action_kind;
  troupe::plan split{
      .kind = gpipe,
      .num_stages = 2,
      .num_microbatches = 2,
      .device_of_stage = {0, 1},
      .edges = troupe::schedule::chain_edges(2),
      .devices = {{{0, forward, 0}, {0, forward, 1}, {0, backward, 0}, {0, backward, 1}, {0, apply, 0}},
                  {{1, forward, 0},
                   {1, input_gradient, 0},
                   {1, forward, 1},
                   {1, input_gradient, 1},
                   {1, weight_gradient, 0},
                   {1, weight_gradient, 1},
                   {1, apply, 0}}}};
  auto ran = troupe::simulate(split, {.forward = 1, .input_gradient = 2, .weight_gradient = 4});
  CHECK(ran.devices[0][2].begin == 4);
  CHECK(ran.devices[0][3].begin == 10);
  CHECK(ran.devices[1][5].end == 15);
  CHECK(ran.makespan == 16);
  CHECK(ran.idle == std::vector<double>{2, 2});
  CHECK(ran.peak_activations == std::vector<int>{2, 2});
}

TEST_CASE("a backward that hands on early lets the stages before go on, but no reduction and no own action") {
  troupe::action_costs costs{.forward = 1, .input_gradient = 2, .weight_gradient = 4, .hands_on_early = true};
  auto ran = troupe::simulate(plan_of(gpipe, 2, 2), costs);
  CHECK(ran.devices[1][2].begin == 3);  // 1B0
  CHECK(ran.devices[0][2].begin == 5);  // 0B0
  CHECK(ran.devices[1][3].begin == 9);
  CHECK(ran.devices[0][3].begin == 11);
  CHECK(ran.makespan == 17);
  costs.hands_on_early = false;
  CHECK(troupe::simulate(plan_of(gpipe, 2, 2), costs).makespan == 21);
  troupe::plan_options reduced{
      .kind = gpipe, .num_stages = 2, .num_microbatches = 1, .num_devices = 2, .reductions = {{0, 1}}};
  costs.hands_on_early = true;
  CHECK(troupe::simulate(troupe::make_plan(reduced), costs).devices[0][2].begin == 10);  // 0R0 after 0B0
  CHECK(troupe::simulate(troupe::make_plan(reduced), costs).devices[1][2].begin == 10);  // 1R0 too
}

TEST_CASE("a device with several stages keeps the activations of them all") {
  auto ran = troupe::simulate(
      troupe::make_plan({.kind = gpipe, .num_stages = 4, .num_microbatches = 5, .num_devices = 2}), {});
  CHECK(ran.peak_activations == std::vector<int>{10, 10});
}

TEST_CASE("an unsound plan is refused with its errors") {
  auto broken = plan_of(gpipe, 2, 2);
  std::swap(broken.devices[1][0], broken.devices[1][2]);
  CHECK_THROWS_AS(troupe::simulate(broken, {}), troupe::bad_input);
  CHECK_THROWS_WITH(troupe::simulate(broken, {}), ContainsSubstring("1B0 waits for 1F0"));
}

TEST_CASE("of very many errors the first ones are listed") {
  auto broken = plan_of(gpipe, 8, 8);
  for (auto& device : broken.devices) device.clear();
  CHECK_THROWS_WITH(troupe::simulate(broken, {}),
                    ContainsSubstring("0F0 is missing") && ContainsSubstring("and 126 more findings"));
}

TEST_CASE("costs that are no durations are refused") {
  auto made = plan_of(gpipe, 2, 2);
  CHECK_THROWS_AS(troupe::simulate(made, {.forward = -1}), troupe::bad_input);
  CHECK_THROWS_AS(troupe::simulate(made, {.apply = -0.5}), troupe::bad_input);
  CHECK_THROWS_AS(troupe::simulate(made, {.communication = std::numeric_limits<double>::infinity()}),
                  troupe::bad_input);
  CHECK_THROWS_AS(troupe::simulate(made, {.weight_gradient = std::numeric_limits<double>::quiet_NaN()}),
                  troupe::bad_input);
}

TEST_CASE("costs whose sum or percentages would overflow are refused") {
  auto made = plan_of(gpipe, 2, 2);
  CHECK_THROWS_WITH(troupe::simulate(made, {.forward = 1e308}), ContainsSubstring("got 1e+308"));
  CHECK_THROWS_WITH(troupe::simulate(made, {.forward = 4e299}),
                    ContainsSubstring("at most 1e+300, got 1.2e+300"));
  CHECK_THROWS_WITH(troupe::simulate_stages(made, {{.communication = 1e308}, {}}),
                    ContainsSubstring("got 1e+308"));
  CHECK_THROWS_WITH(troupe::simulate_stages(made, {{}, {.input_gradient = 1e300}}),
                    ContainsSubstring("at most 1e+300, got 2e+300"));
  CHECK(troupe::simulate(made, {.forward = 1e299}).makespan < 1e300);
}

TEST_CASE("stages of their own costs: the slowest one sets the pace") {
  auto made = plan_of(gpipe, 2, 3);
  std::vector<troupe::action_costs> costs{
      {.forward = 1, .input_gradient = 2, .weight_gradient = 1},
      {.forward = 4, .input_gradient = 5, .weight_gradient = 3, .communication = 10}};
  auto ran = troupe::simulate_stages(made, costs);
  CHECK(ran.devices[1][0].begin == 11);
  CHECK(ran.devices[1][5].end == 11 + 3 * (4 + 5 + 3));
  // The gradient takes the same way back.
  CHECK(ran.devices[0][5].begin == 11 + 36 + 10);
  CHECK(ran.makespan == 60);
  CHECK(ran.idle == std::vector<double>{60 - 12, 60 - 36});
  CHECK_THROWS_WITH(troupe::simulate_stages(made, {{}}),
                    ContainsSubstring("costs of 1 stages") && ContainsSubstring("the plan has 2"));
}

TEST_CASE("stages of equal costs take the time of one cost for all") {
  troupe::action_costs costs{.forward = 2,
                             .input_gradient = 3,
                             .weight_gradient = 1,
                             .communication = 0.5,
                             .apply = 4,
                             .hands_on_early = true};
  for (auto kind : {gpipe, one_f_one_b}) {
    auto made = plan_of(kind, 4, 6);
    CHECK(troupe::simulate_stages(made, std::vector(4, costs)).makespan ==
          troupe::simulate(made, costs).makespan);
  }
}
