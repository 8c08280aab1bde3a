#include "troupe/device/step_account.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "troupe/messages/scheduler.hpp"

using namespace troupe;
using namespace troupe::actors::devices;

namespace {

actors::messages::step_done described(const step_account& account) {
  actors::messages::step_done report;
  account.describe(report, true);
  return report;
}

}  // namespace

TEST_CASE("a step's time runs from its first action to its last, its work is the sum of the actions") {
  trace::event_ring ring("device 3", 16);
  step_account account(ring, 3);
  account.begin_step(2, 7);
  account.add_work({0, action_kind::forward, 1}, 100, 150);
  account.add_work({1, action_kind::backward, 0}, 170, 200);
  CHECK(described(account).first_begin_ns == 100);
  CHECK(described(account).last_end_ns == 200);
  CHECK(described(account).busy_ns == 80);
  CHECK(described(account).actions ==
        std::vector<actors::job::measured_action>{{3, 0, 1, action_kind::forward, 100, 150},
                                                  {3, 1, 0, action_kind::backward, 170, 200}});
}

TEST_CASE("what an action waits for other replicas within it is no work, and an event of its own") {
  trace::event_ring ring("device 3", 16);
  step_account account(ring, 3);
  account.begin_step(2, 7);
  action op{1, action_kind::forward, 4};
  account.begin_action(op);
  account.begin_wait_in_action(op, trace::wait_reason::tensor);
  CHECK(ring.snapshot().back().kind == trace::trace_kind::wait_begun);
  for (auto begin_ns = trace::now_ns(); trace::now_ns() == begin_ns;) {
  }
  account.end_wait_in_action(op);
  auto waited = ring.snapshot().back();
  CHECK(waited.kind == trace::trace_kind::wait);
  CHECK(waited.stage == 1);
  CHECK(waited.end_ns > waited.begin_ns);
  account.end_action(op, true);
  auto report = described(account);
  CHECK(report.busy_ns <= report.last_end_ns - report.first_begin_ns - (waited.end_ns - waited.begin_ns));
  CHECK(report.busy_ns >= 0);
}

TEST_CASE("what a deferred update waits for a copy of the state does not count twice") {
  trace::event_ring ring("device 3", 16);
  step_account account(ring, 3);
  account.begin_step(2, 7);
  action op{1, action_kind::forward, 4}, update{1, action_kind::apply, 0};
  account.begin_wait(trace::wait_reason::tensor, op);
  account.begin_action(op);
  account.begin_deferred();
  account.begin_wait_in_action(update, trace::wait_reason::state_copy);
  for (auto begin_ns = trace::now_ns(); trace::now_ns() < begin_ns + 1'000'000;) {
  }
  account.end_wait_in_action(update);
  account.end_deferred(update, 6);
  account.end_action(op, true);
  auto events = ring.snapshot();
  auto length_of = [&](trace::trace_kind kind) {
    auto found = std::ranges::find(events, kind, &trace::trace_event::kind);
    REQUIRE(found != events.end());
    return found->end_ns - found->begin_ns;
  };
  CHECK(length_of(trace::trace_kind::apply) >= 1'000'000);
  CHECK(described(account).busy_ns ==
        length_of(trace::trace_kind::forward) - length_of(trace::trace_kind::apply));
}

TEST_CASE("a new step starts with all figures at zero") {
  trace::event_ring ring("device 0", 16);
  step_account account(ring, 0);
  account.begin_step(2, 7);
  account.add_work({0, action_kind::forward, 0}, 100, 150);
  account.saved(0);
  account.begin_step(2, 7);
  CHECK(described(account).first_begin_ns == 0);
  CHECK(described(account).last_end_ns == 0);
  CHECK(described(account).busy_ns == 0);
  CHECK(described(account).peak_activations == 0);
  CHECK(described(account).actions.empty());
}

TEST_CASE("the peak counts the activations that one stage holds at once") {
  trace::event_ring ring("device 0", 16);
  step_account account(ring, 0);
  account.begin_step(2, 7);
  account.saved(0);
  account.saved(0);
  account.saved(1);
  CHECK(described(account).peak_activations == 2);
  account.released(0);
  account.saved(0);
  CHECK(described(account).peak_activations == 2);
  account.saved(0);
  CHECK(described(account).peak_activations == 3);
}

TEST_CASE("actions and other events are recorded in the trace, and only actions count as work") {
  trace::event_ring ring("device 0", 16);
  step_account account(ring, 0);
  account.begin_step(2, 7);
  for (auto kind : {action_kind::forward, action_kind::backward, action_kind::input_gradient,
                    action_kind::weight_gradient, action_kind::reduce_gradient})
    account.add_work({2, kind, 1}, 10, 20);
  account.record(trace::trace_kind::apply, 30, 2);
  CHECK(described(account).busy_ns == 50);
  CHECK(described(account).last_end_ns == 20);
  auto events = ring.snapshot();
  REQUIRE(events.size() == 6);
  CHECK(events[0].kind == trace::trace_kind::forward);
  CHECK(events[1].kind == trace::trace_kind::backward);
  CHECK(events[2].kind == trace::trace_kind::input_gradient);
  CHECK(events[3].kind == trace::trace_kind::weight_gradient);
  CHECK(events[4].kind == trace::trace_kind::reduce_gradient);
  CHECK(events[5].kind == trace::trace_kind::apply);
  CHECK(events[0].stage == 2);
  CHECK(events[0].microbatch == 1);
  CHECK(events[0].generation == 2);
  CHECK(events[0].step == 7);
  CHECK(events[5].begin_ns == 30);
  CHECK(events[5].microbatch == -1);
}

TEST_CASE("a wait is recorded once when it begins and with its length when its action does") {
  trace::event_ring ring("device 0", 16);
  step_account account(ring, 0);
  account.begin_step(2, 7);
  action op{1, action_kind::forward, 3};
  account.begin_wait(trace::wait_reason::samples, op);
  account.begin_wait(trace::wait_reason::tensor, op);
  account.begin_action(op);
  account.begin_action(op);
  auto events = ring.snapshot();
  REQUIRE(events.size() == 4);
  CHECK(events[0].kind == trace::trace_kind::wait_begun);
  CHECK(events[1].kind == trace::trace_kind::wait);
  CHECK(events[1].begin_ns == events[0].begin_ns);
  CHECK(events[1].detail == static_cast<std::uint8_t>(trace::wait_reason::samples));
  CHECK(events[1].stage == 1);
  CHECK(events[1].microbatch == 3);
  CHECK(events[2].kind == trace::trace_kind::action_begun);
  CHECK(events[3].kind == trace::trace_kind::action_begun);
}

TEST_CASE("a device is busy in the step after one with a long action, and at first") {
  trace::event_ring ring("device 0", 16);
  step_account account(ring, 0);
  CHECK(account.is_busy());
  account.end_step();
  CHECK_FALSE(account.is_busy());
}

TEST_CASE("the first value of a step that is not finite is reported") {
  trace::event_ring ring("device 0", 16);
  step_account account(ring, 0);
  account.begin_step(1, 0);
  account.add_non_finite("the loss");
  account.add_non_finite("a gradient");
  CHECK(described(account).non_finite == "the loss");
  account.begin_step(1, 1);
  CHECK(described(account).non_finite.empty());
}
