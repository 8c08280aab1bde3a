#include "troupe/schedule/cut.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <random>
#include <stdexcept>

#include "runtime/schedule/drawn_plans.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/text/plan_text.hpp"

using namespace troupe;
using namespace troupe::schedule;
using namespace troupe::testing;

namespace {

/// Device 0: 0F0 0F1 0B0 0B1 0A; device 1: 1F0 1F1 1B0 1B1 1A.
plan two_stages() { return make_plan({schedule_kind::gpipe, 2, 2, 2}); }

/// Device 0: 0F0 0B0 0R0 0A; device 1: 1F0 1B0 1R0 1A.
plan with_reduction() { return make_plan({schedule_kind::gpipe, 2, 1, 2, {{0, 1}}}); }

}  // namespace

TEST_CASE("whole steps are closed cuts") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto drawn = make_plan(drawn_options(6, 5, random));
    CAPTURE(plan_text(drawn));
    for (std::uint64_t step : {0, 1, 7}) {
      CHECK(is_closed(drawn, step_cut(drawn, step)));
      CHECK(smallest_closed_cut(drawn, step_cut(drawn, step)) == step_cut(drawn, step));
    }
  }
}

TEST_CASE("what is open in a cut is named with the actions, the edge, the step and where the other stops") {
  auto of = two_stages();
  auto forward = find_open_wait(of, {{{3, 0}, {3, 1}}});
  REQUIRE(forward);
  CHECK(forward->text ==
        "device 1 runs 1F0 of step 3, which takes the tensor of edge 0.0 -> 1.0 from 0F0, but device 0 stops "
        "before 0F0");
  CHECK(forward->inside == action{1, action_kind::forward, 0});
  CHECK(forward->outside == action{0, action_kind::forward, 0});
  CHECK(forward->step == 3);
  CHECK(forward->device == 1);
  CHECK(forward->other_device == 0);
  CHECK(find_open_wait(of, {{{3, 4}, {3, 3}}})->text ==
        "device 0 runs 0B1 of step 3, which takes the gradient of edge 0.0 -> 1.0 from 1B1, but device 1 "
        "stops before 1B1");
  // The first missing action may be one of an earlier step than that where the device stops.
  CHECK(find_open_wait(of, {{{2, 1}, {0, 4}}})->text ==
        "device 0 runs 0B0 of step 1, which takes the gradient of edge 0.0 -> 1.0 from 1B0, but device 1 "
        "stops before 1A of step 0");
  CHECK(is_closed(of, {{{3, 3}, {3, 3}}}));
}

TEST_CASE("a reduction is inside with the Rs of all its stages or with none") {
  auto of = with_reduction();
  CHECK(is_closed(of, {{{0, 2}, {0, 2}}}));
  CHECK(is_closed(of, {{{0, 3}, {0, 3}}}));
  auto half = find_open_wait(of, {{{0, 2}, {0, 3}}});
  REQUIRE(half);
  CHECK(half->is_together);
  CHECK(half->text ==
        "device 1 runs 1R0 of step 0, which is one reduction with 0R0, but device 0 stops before 0R0");
  CHECK(smallest_closed_cut(of, {{{0, 2}, {0, 3}}}) == cut{{{0, 3}, {0, 3}}});
}

TEST_CASE("the smallest closed cut adds what the wanted actions wait for and nothing else") {
  auto of = two_stages();
  CHECK(smallest_closed_cut(of, {{{0, 0}, {0, 2}}}) == cut{{{0, 2}, {0, 2}}});
  CHECK(smallest_closed_cut(of, {{{0, 3}, {0, 0}}}) == cut{{{0, 3}, {0, 3}}});
  CHECK(smallest_closed_cut(of, {{{2, 1}, {0, 0}}}) == cut{{{2, 1}, {1, 4}}});
  // The end of a step is the beginning of the next one.
  CHECK(smallest_closed_cut(of, {{{0, 5}, {0, 5}}}) == step_cut(of, 1));
}

TEST_CASE("the smallest closed cut is inside every closed cut that has what is wanted") {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    auto drawn = make_plan(drawn_options(4, 3, random));
    CAPTURE(plan_text(drawn));
    cut wanted, other;
    for (const auto& actions : drawn.devices) {
      auto place = static_cast<std::uint32_t>(drawn_index(actions.size(), random));
      wanted.devices.push_back({drawn_index(2, random), place});
      auto later = static_cast<std::uint32_t>(drawn_index(actions.size(), random));
      other.devices.push_back(std::max(wanted.devices.back(), plan_position{drawn_index(2, random), later}));
    }
    auto smallest = smallest_closed_cut(drawn, wanted);
    auto larger = smallest_closed_cut(drawn, other);
    REQUIRE(is_closed(drawn, smallest));
    for (std::size_t device = 0; device < drawn.devices.size(); ++device) {
      REQUIRE(smallest.devices[device] >= wanted.devices[device]);
      REQUIRE(smallest.devices[device] <= larger.devices[device]);
    }
  }
}

TEST_CASE(
    "the cut after the gradients of a step has all forwards and backwards of it, and no more than that") {
  CHECK(gradients_cut(two_stages(), 3) == cut{{{3, 4}, {3, 4}}});
  CHECK(gradients_cut(with_reduction(), 0) == cut{{{0, 2}, {0, 2}}});
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    auto drawn = make_plan(drawn_options(6, 5, random));
    CAPTURE(plan_text(drawn));
    auto at = gradients_cut(drawn, 2);
    if (drawn.kind == schedule_kind::forward_only) {
      REQUIRE(at == step_cut(drawn, 3));
      continue;
    }
    REQUIRE(is_closed(drawn, at));
    if (drawn.flush_every > 1) continue;  // some updates come before other backwards
    for (std::size_t device = 0; device < drawn.devices.size(); ++device) {
      REQUIRE(at.devices[device].step == 2);
      const auto& list = drawn.devices[device];
      for (std::size_t place = 0; place < list.size(); ++place) {
        bool is_update =
            list[place].kind == action_kind::reduce_gradient || list[place].kind == action_kind::apply;
        REQUIRE(is_update == (place >= at.devices[device].action));
      }
    }
  }
}

TEST_CASE("updates that a plan has before a device's last backward are in the cut with all they belong to") {
  // Device 0: 0F0 2F0 2B0 2R0 0B0 0A 2A; device 1: 1F0 1B0 1R0 1A.
  auto of = make_plan({schedule_kind::gpipe, 3, 1, 3, {{1, 2}}});
  const auto first = of.devices[0], last = of.devices[2];
  of.devices[0] = {first[0], last[0], last[1], last[2], first[1], first[2], last[3]};
  of.devices.pop_back();
  of.device_of_stage[2] = 0;
  auto at = gradients_cut(of, 0);
  CHECK(at.devices[0].action == 5);
  CHECK(at.devices[1].action == 3);
}

TEST_CASE("single steps add a step, a microbatch or an action") {
  auto of = two_stages();
  auto from = step_cut(of, 4);
  CHECK(advanced_cut(of, from, step_unit::step) == step_cut(of, 5));
  CHECK(advanced_cut(of, from, step_unit::step, 1'000'000'000) == step_cut(of, 1'000'000'004));
  CHECK(advanced_cut(of, from, step_unit::action) == cut{{{4, 1}, {4, 0}}});
  CHECK(advanced_cut(of, from, step_unit::action, 2) == cut{{{4, 1}, {4, 1}}});
  CHECK(advanced_cut(of, from, step_unit::action, 10) == step_cut(of, 5));
  // The forwards of both microbatches come first; A belongs to no microbatch.
  CHECK(advanced_cut(of, from, step_unit::microbatch) == cut{{{4, 3}, {4, 3}}});
  CHECK(advanced_cut(of, from, step_unit::microbatch, 2) == cut{{{4, 4}, {4, 4}}});
  CHECK(advanced_cut(of, from, step_unit::microbatch, 3) == cut{{{5, 3}, {5, 3}}});
  CHECK(advanced_cut(of, {{{4, 1}, {4, 1}}}, step_unit::step) == step_cut(of, 5));
}

TEST_CASE("a single action that is an R takes all stages of the reduction along") {
  auto of = with_reduction();
  CHECK(advanced_cut(of, {{{0, 2}, {0, 2}}}, step_unit::action) == cut{{{0, 3}, {0, 3}}});
}

TEST_CASE("units are named as users type them, and cuts of other plans are refused") {
  CHECK(step_unit_from("step") == step_unit::step);
  CHECK(step_unit_from("microbatch") == step_unit::microbatch);
  CHECK(step_unit_from("action") == step_unit::action);
  CHECK_THROWS_MATCHES(step_unit_from("epoch"), bad_input,
                       Catch::Matchers::Message("unknown unit of a single step 'epoch'. Choose one of step, "
                                                "microbatch, action"));
  CHECK_THROWS_AS(is_closed(two_stages(), {{{0, 0}}}), std::invalid_argument);
  CHECK_THROWS_AS(is_closed(two_stages(), {{{0, 0}, {0, 6}}}), std::invalid_argument);
}
