#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <tuple>

#include "runtime/schedule/drawn_plans.hpp"
#include "runtime/schedule/simulation/reference_simulation.hpp"
#include "troupe/schedule/simulation/closed_form.hpp"

// Idle times and peaks of the schedules that have more than 1F1B's, under the conditions that the papers
// have.
// - p devices, m microbatches, v chunks of each device
// - f, b and w are the costs of one chunk
namespace {

using Catch::Matchers::WithinRel;
using troupe::action_costs;
using enum troupe::schedule_kind;

troupe::timeline run(troupe::schedule_kind kind, int p, int v, int m, const action_costs& costs) {
  return troupe::simulate(
      troupe::make_plan({.kind = kind, .num_stages = p * v, .num_microbatches = m, .num_devices = p}), costs);
}

bool is_near(double a, double b, double scale) { return std::abs(a - b) <= 1e-9 * scale; }

/// Of the device that idles most between its first action and its last.
double worst_own_idle(const troupe::timeline& ran) {
  double worst = 0;
  for (const auto& device : ran.devices) worst = std::max(worst, troupe::testing::own_idle(device));
  return worst;
}

int worst_peak(const troupe::timeline& ran) {
  return *std::max_element(ran.peak_activations.begin(), ran.peak_activations.end());
}

/// Calls `body(p, m, costs)` for p in 2..16 and some m from `least(p)` to 8p, with drawn costs for which
/// w <= b <= f + w.
template <class Least, class Body>
void for_many(Least least, Body body) {
  std::mt19937 random(7);
  auto drawn = [&random](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int p = 2; p <= 16; ++p)
    for (int m : {least(p), least(p) + 1, 3 * p, 3 * p + 2, 8 * p}) {
      if (m > 3 * p + 2 && p > 9) continue;
      action_costs costs{.forward = drawn(0.2, 2), .weight_gradient = drawn(0.2, 2)};
      costs.input_gradient = costs.weight_gradient + drawn(0, costs.forward);
      CAPTURE(p, m, costs.forward, costs.input_gradient, costs.weight_gradient);
      body(p, m, costs);
    }
}

}  // namespace

TEST_CASE("ZB-H1 idles (p-1)(f+b-w) if w <= f, else (p-1)b, and every device keeps p microbatches") {
  for_many([](int p) { return p; },
           [](int p, int m, const action_costs& costs) {
             auto [f, b, w] = std::tuple(costs.forward, costs.input_gradient, costs.weight_gradient);
             auto ran = run(zb_h1, p, 1, m, costs);
             double expected = (p - 1) * (w <= f ? f + b - w : b);
             for (double idle : ran.idle) REQUIRE(is_near(idle, expected, ran.makespan));
             REQUIRE(ran.peak_activations == std::vector<int>(static_cast<std::size_t>(p), p));
           });
}

TEST_CASE(
    "ZB-H2's worst device idles (p-1)(f+b-2w) of its own span if w <= f, else (p-1)(b-f), and all keep "
    "2p-1") {
  for_many([](int p) { return 2 * p - 1; },
           [](int p, int m, const action_costs& costs) {
             auto [f, b, w] = std::tuple(costs.forward, costs.input_gradient, costs.weight_gradient);
             auto ran = run(zb_h2, p, 1, m, costs);
             double expected = (p - 1) * (w <= f ? std::max(f + b - 2 * w, b - f) : b - f);
             REQUIRE(is_near(worst_own_idle(ran), expected, ran.makespan));
             REQUIRE(ran.peak_activations == std::vector<int>(static_cast<std::size_t>(p), 2 * p - 1));
           });
}

TEST_CASE(
    "ZB-V idles nothing of its own span if f = b = w, and every device keeps as much as p whole stages") {
  for_many([](int p) { return 2 * p - 1; },
           [](int p, int m, const action_costs& costs) {
             double f = costs.forward;
             auto ran = run(zb_v, p, 2, m, {.forward = f, .input_gradient = f, .weight_gradient = f});
             REQUIRE(is_near(worst_own_idle(ran), 0, ran.makespan));
             for (double idle : ran.idle) REQUIRE(is_near(idle, (p - 1) * f, ran.makespan));
             REQUIRE(ran.peak_activations == std::vector<int>(static_cast<std::size_t>(p), 2 * p));
           });
}

TEST_CASE("DualPipeV keeps 2p+1 chunks, and idles (p-1)f if f = b = w") {
  for_many([](int p) { return 2 * p; },
           [](int p, int m, const action_costs& costs) {
             double f = costs.forward;
             auto ran = run(dualpipe_v, p, 2, m, {.forward = f, .input_gradient = f, .weight_gradient = f});
             for (double idle : ran.idle) REQUIRE(is_near(idle, (p - 1) * f, ran.makespan));
             REQUIRE(ran.peak_activations == std::vector<int>(static_cast<std::size_t>(p), 2 * p + 1));
           });
}

TEST_CASE("interleaved 1F1B idles (p-1)(f+b+w) of one chunk, and keeps p(1+(p-1)/(pv)) whole stages") {
  std::mt19937 random(3);
  for (int p = 2; p <= 16; ++p)
    for (int v = 1; v <= 4; ++v)
      for (int rounds : {1, 2, 3, 8}) {
        if (p * v * rounds > 128) continue;
        auto drawn = [&random] { return std::uniform_real_distribution<double>(0, 3)(random); };
        action_costs costs{.forward = drawn(), .input_gradient = drawn(), .weight_gradient = drawn()};
        CAPTURE(p, v, rounds, costs.forward, costs.input_gradient, costs.weight_gradient);
        auto ran = run(interleaved_1f1b, p, v, rounds * p, costs);
        double expected = (p - 1) * (costs.forward + costs.input_gradient + costs.weight_gradient);
        for (double idle : ran.idle) REQUIRE(is_near(idle, expected, ran.makespan));
        double whole_stages = p * (1 + (p - 1.0) / (p * v));
        if (rounds >= 2)
          REQUIRE_THAT(worst_peak(ran) / static_cast<double>(v), WithinRel(whole_stages, 1e-12));
      }
}

TEST_CASE("ZB-H1 keeps what 1F1B keeps and takes less time, ZB-H2 less than ZB-H1, ZB-V less than 1F1B") {
  for (int p : {2, 4, 8, 16}) {
    auto makespan = [p](troupe::schedule_kind kind, int v) {
      double part = 1.0 / v;
      return run(kind, p, v, 4 * p, {.forward = part, .input_gradient = part, .weight_gradient = part})
          .makespan;
    };
    CHECK(makespan(zb_h1, 1) < makespan(one_f_one_b, 1));
    CHECK(makespan(zb_h2, 1) <= makespan(zb_h1, 1));
    CHECK(makespan(zb_v, 2) < makespan(zb_h1, 1));
    CHECK(makespan(interleaved_1f1b, 2) < makespan(one_f_one_b, 1));
  }
}

TEST_CASE(
    "the closed forms are what is simulated, with equal costs, and their peaks with any number of "
    "microbatches") {
  for (const auto& row : troupe::schedule::schedule_table())
    for (int p : {1, 2, 3, 5, 8})
      for (int v = 1; v <= 3; ++v)
        for (int m = 1; m <= 3 * p; ++m) {
          bool has_chunks = row.chunked && (row.chunked->num_chunks == 0 || row.chunked->num_chunks == v);
          if (row.chunked ? !has_chunks : v != 1) continue;
          troupe::schedule::chunk_shape shape{p, v, m};
          if (row.chunked && row.chunked->objection && !row.chunked->objection(shape).empty()) continue;
          CAPTURE(row.name, p, v, m);
          auto ran = run(row.kind, p, v, m, {.apply = 2});
          auto expected = troupe::schedule::closed_form_of(row.kind, shape, {.apply = 2});
          REQUIRE(worst_peak(ran) == expected.peak_activations);
          if (m >= 2 * p) REQUIRE_THAT(ran.makespan, WithinRel(expected.makespan, 1e-12));
        }
}
