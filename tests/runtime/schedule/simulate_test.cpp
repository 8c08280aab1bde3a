#include "troupe/schedule/simulate.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <tuple>

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
void for_many(Body body) {
  for (int p : {1, 2, 3, 4, 7, 8, 16})
    for (int m : {1, 2, 3, 4, 5, 8, 16, 33})
      for (const auto& costs : some_costs) body(p, m, costs);
}

}  // namespace

TEST_CASE("GPipe idles (p-1)(f+B) on every device and keeps all m microbatches") {
  for_many([](int p, int m, const troupe::action_costs& costs) {
    CAPTURE(p, m, costs.forward, costs.input_gradient, costs.weight_gradient);
    auto ran = troupe::simulate(plan_of(gpipe, p, m), costs);
    double round = costs.forward + costs.input_gradient + costs.weight_gradient;
    REQUIRE_THAT(ran.makespan, WithinRel((m + p - 1) * round, 1e-12));
    for (double idle : ran.idle) REQUIRE(std::abs(idle - (p - 1) * round) <= 1e-12 * ran.makespan);
    REQUIRE(ran.peak_activations == std::vector<int>(static_cast<std::size_t>(p), m));
  });
}

TEST_CASE("1F1B idles (p-1)(f+B) on every device and keeps min(m, p-s) microbatches at stage s") {
  for_many([](int p, int m, const troupe::action_costs& costs) {
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
  for_many([](int p, int m, const troupe::action_costs& costs) {
    auto ran = troupe::simulate(plan_of(forward_only, p, m), costs);
    for (double idle : ran.idle) REQUIRE(std::abs(idle - (p - 1) * costs.forward) <= 1e-12 * ran.makespan);
    REQUIRE(ran.peak_activations == std::vector<int>(static_cast<std::size_t>(p), 0));
  });
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
  CHECK(shown(ran.devices[0]) == expected{{"0F0", 0, 1}, {"0F1", 1, 2}, {"0B0", 7, 12}, {"0B1", 13, 18}});
  CHECK(shown(ran.devices[1]) == expected{{"1F0", 1, 2}, {"1B0", 2, 7}, {"1F1", 7, 8}, {"1B1", 8, 13}});
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
  troupe::plan split{.kind = gpipe,
                     .num_stages = 2,
                     .num_microbatches = 2,
                     .device_of_stage = {0, 1},
                     .devices = {{{0, forward, 0}, {0, forward, 1}, {0, backward, 0}, {0, backward, 1}},
                                 {{1, forward, 0},
                                  {1, input_gradient, 0},
                                  {1, forward, 1},
                                  {1, input_gradient, 1},
                                  {1, weight_gradient, 0},
                                  {1, weight_gradient, 1}}}};
  auto ran = troupe::simulate(split, {.forward = 1, .input_gradient = 2, .weight_gradient = 4});
  CHECK(ran.devices[0][2].begin == 4);
  CHECK(ran.devices[0][3].begin == 10);
  CHECK(ran.devices[1][5].end == 15);
  CHECK(ran.makespan == 16);
  CHECK(ran.idle == std::vector<double>{2, 2});
  CHECK(ran.peak_activations == std::vector<int>{2, 2});
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
                    ContainsSubstring("0F0 is missing") && ContainsSubstring("and 118 more findings"));
}

TEST_CASE("costs that are no durations are refused") {
  auto made = plan_of(gpipe, 2, 2);
  CHECK_THROWS_AS(troupe::simulate(made, {.forward = -1}), troupe::bad_input);
  CHECK_THROWS_AS(troupe::simulate(made, {.communication = std::numeric_limits<double>::infinity()}),
                  troupe::bad_input);
  CHECK_THROWS_AS(troupe::simulate(made, {.weight_gradient = std::numeric_limits<double>::quiet_NaN()}),
                  troupe::bad_input);
}
