#include "troupe/device/step_clock.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("a step's time runs from its first action to its last, its work is the sum of the actions") {
  event_ring ring("device 3", 16);
  step_clock clock(ring, 3);
  clock.begin_step();
  clock.add({0, action_kind::forward, 1}, 100, 150, 2, 7);
  clock.add({1, action_kind::backward, 0}, 170, 200, 2, 7);
  CHECK(clock.first_begin_ns() == 100);
  CHECK(clock.last_end_ns() == 200);
  CHECK(clock.busy_ns() == 80);
  CHECK(clock.actions() == std::vector<measured_action>{{3, 0, 1, action_kind::forward, 100, 150},
                                                        {3, 1, 0, action_kind::backward, 170, 200}});
}

TEST_CASE("a new step starts with all figures at zero") {
  event_ring ring("device 0", 16);
  step_clock clock(ring, 0);
  clock.begin_step();
  clock.add({0, action_kind::forward, 0}, 100, 150, 1, 0);
  clock.saved(0);
  clock.begin_step();
  CHECK(clock.first_begin_ns() == 0);
  CHECK(clock.last_end_ns() == 0);
  CHECK(clock.busy_ns() == 0);
  CHECK(clock.peak_activations() == 0);
  CHECK(clock.actions().empty());
}

TEST_CASE("the peak counts the activations that one stage holds at once") {
  event_ring ring("device 0", 16);
  step_clock clock(ring, 0);
  clock.begin_step();
  clock.saved(0);
  clock.saved(0);
  clock.saved(1);
  CHECK(clock.peak_activations() == 2);
  clock.released(0);
  clock.saved(0);
  CHECK(clock.peak_activations() == 2);
  clock.saved(0);
  CHECK(clock.peak_activations() == 3);
}

TEST_CASE("actions and other events are recorded in the trace, and only actions count as work") {
  event_ring ring("device 0", 16);
  step_clock clock(ring, 0);
  clock.begin_step();
  for (auto kind : {action_kind::forward, action_kind::backward, action_kind::input_gradient,
                    action_kind::weight_gradient, action_kind::reduce_gradient})
    clock.add({2, kind, 1}, 10, 20, 4, 9);
  clock.record(trace_kind::apply, 30, 4, 9, 2);
  CHECK(clock.busy_ns() == 50);
  CHECK(clock.last_end_ns() == 20);
  auto events = ring.snapshot();
  REQUIRE(events.size() == 6);
  CHECK(events[0].kind == trace_kind::forward);
  CHECK(events[1].kind == trace_kind::backward);
  CHECK(events[2].kind == trace_kind::input_gradient);
  CHECK(events[3].kind == trace_kind::weight_gradient);
  CHECK(events[4].kind == trace_kind::reduce_gradient);
  CHECK(events[5].kind == trace_kind::apply);
  CHECK(events[0].stage == 2);
  CHECK(events[0].microbatch == 1);
  CHECK(events[0].generation == 4);
  CHECK(events[0].step == 9);
  CHECK(events[5].begin_ns == 30);
  CHECK(events[5].microbatch == -1);
}
