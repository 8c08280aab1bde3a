// The times of actions that are queued on a GPU.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "support/cuda_emulation/runtime/gpus.hpp"
#include "support/devices.hpp"
#include "troupe/device/step_account.hpp"
#include "troupe/messages/scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;
using actors::devices::step_account;

namespace {

struct account_on_gpu {
  trace::event_ring ring{"device", 1024};
  step_account account{ring, 0};
  tensor values = tensor::zeros({1000}, dtype::f32, first_gpu());

  account_on_gpu() {
    account.begin_generation(first_gpu());
    account.begin_step(1, 0);
  }
  void run(const action& op) {
    account.begin_action(op);
    values.copy_from(tensor::full({1000}, 1));
    account.end_action(op, true);
  }
  actors::messages::step_done end_step() {
    account.end_step();
    actors::messages::step_done report;
    account.describe(report, true);
    return report;
  }
  std::vector<trace::trace_kind> recorded() const {
    std::vector<trace::trace_kind> kinds;
    for (const auto& event : ring.snapshot())
      if (event.kind != trace::trace_kind::action_begun) kinds.push_back(event.kind);
    return kinds;
  }
};

}  // namespace

TEST_CASE("an action on a GPU has the times at which the GPU runs it, not those of the host that queues it") {
  account_on_gpu here;
  for (int number = 0; number < 3; ++number) here.run({0, action_kind::forward, number});
  auto queued_ns = trace::now_ns();
  auto report = here.end_step();
  REQUIRE(report.actions.size() == 3);
  CHECK(report.actions.back().begin_ns > queued_ns);
  CHECK(report.last_end_ns == report.actions.back().end_ns);
  auto is_in_order = [](const auto& one, const auto& next) { return one.end_ns <= next.begin_ns; };
  CHECK(std::ranges::adjacent_find(report.actions, std::not_fn(is_in_order)) == report.actions.end());
  CHECK(report.busy_ns > 0);
  CHECK(report.busy_ns <= report.last_end_ns - report.first_begin_ns);
}

TEST_CASE("at most three actions are queued on a GPU") {
  account_on_gpu here;
  for (int number = 0; number < 10; ++number) {
    here.run({0, action_kind::forward, number});
    CHECK(static_cast<int>(here.recorded().size()) >= number - 2);
  }
  CHECK(here.end_step().actions.size() == 10);
}

TEST_CASE("the end of a step waits for its passes, and not for its update") {
  account_on_gpu here;
  here.run({0, action_kind::backward, 0});
  here.run({0, action_kind::apply, -1});
  CHECK(here.end_step().actions.size() == 1);
  CHECK(here.recorded() == std::vector{trace::trace_kind::backward});
  CHECK(emulation::num_queued() > 0);
  here.account.begin_step(1, 1);
  here.run({0, action_kind::forward, 0});
  here.end_step();
  using enum trace::trace_kind;
  CHECK(here.recorded() == std::vector{backward, apply, forward});
  CHECK(here.ring.snapshot().back().step == 1);
}

TEST_CASE("the time of a deferred update does not count for the action on a GPU that it lies within") {
  account_on_gpu here;
  action op{0, action_kind::forward, 0};
  here.account.begin_action(op);
  here.account.begin_deferred();
  here.values.copy_from(tensor::full({1000}, 1));
  here.account.end_deferred({0, action_kind::apply, 0}, 0);
  here.account.end_action(op, true);
  auto report = here.end_step();
  auto events = here.ring.snapshot();
  auto update = std::ranges::find(events, trace::trace_kind::apply, &trace::trace_event::kind);
  REQUIRE(update != events.end());
  CHECK(report.busy_ns == report.last_end_ns - report.first_begin_ns - (update->end_ns - update->begin_ns));
}

TEST_CASE("what is queued for a generation that has ended is forgotten") {
  account_on_gpu here;
  here.run({0, action_kind::forward, 0});
  here.account.begin_generation(first_gpu());
  here.account.begin_step(2, 0);
  CHECK(here.end_step().actions.empty());
}
