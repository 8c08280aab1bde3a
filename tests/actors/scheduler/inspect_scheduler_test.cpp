// What a scheduler tells an inspector.
#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"
#include "troupe/device/step_sampling.hpp"
#include "troupe/messages/inspector.hpp"
#include "troupe/messages/measured_steps.hpp"

using namespace troupe;
using namespace troupe::actors::scheduler;
using namespace troupe::testing;

namespace {

actors::messages::scheduler_report inspected(one_scheduler& here, std::uint64_t after = 0) {
  return ask<actors::messages::scheduler_report>(here.actors, here.scheduler,
                                                 actors::messages::inspect_scheduler{after})
      .value.value();
}

}  // namespace

TEST_CASE("a scheduler without a job tells that it has none") {
  one_scheduler here({.knows_job = false});
  auto report = inspected(here);
  CHECK_FALSE(report.job);
  CHECK(report.step == 0);
  CHECK(report.steps.newest == 0);
}

TEST_CASE("a scheduler tells the call, the steps that are done, and who has which device") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  here.all_done(0);
  here.all_done(1);
  auto report = inspected(here);
  CHECK(report.phase == static_cast<std::uint8_t>(job_state::phase::running));
  CHECK(report.kind == actors::job::call_kind::train);
  CHECK(report.step == 2);
  CHECK(report.end_step == 100);
  CHECK(report.hosts.num_devices() == here.num_devices());
  REQUIRE(report.steps.steps.size() == 2);
  CHECK(report.steps.steps[1].step == 2);
  CHECK(report.steps.steps[1].num_samples == 64);
  CHECK(inspected(here, report.steps.newest).steps.steps.empty());
  here.all_done(2);
  CHECK(inspected(here, report.steps.newest).steps.steps.size() == 1);
}

TEST_CASE("a scheduler keeps the measured step of the call that trained last") {
  one_scheduler here;
  here.begin_training(3);
  here.train_to_end(0, 3);
  auto report = inspected(here);
  REQUIRE(report.last_training);
  CHECK(report.last_training->steps_done == 3);
  CHECK(report.phase == static_cast<std::uint8_t>(job_state::phase::gathering));
}

TEST_CASE("the newest step that every device has described is kept, and incomplete ones are few") {
  actors::messages::measured_steps kept;
  auto describe = [&](std::uint64_t step, std::uint32_t device) {
    kept.add(step, device, {{device, device, 0, action_kind::forward, 1, 2}}, 2);
  };
  describe(1, 0);
  CHECK_FALSE(kept.newest());
  describe(1, 1);
  REQUIRE(kept.newest());
  CHECK(kept.newest()->step == 1);
  CHECK(kept.newest()->actions.size() == 2);
  kept.add(2, 0, {}, 2);  // did not describe it
  for (std::uint64_t step = 3; step < 100; ++step) describe(step, 0);
  CHECK(kept.newest()->step == 1);
  describe(3, 1);  // forgotten: device 0's part is gone
  CHECK(kept.newest()->step == 1);
  describe(99, 1);
  CHECK(kept.newest()->step == 99);
  describe(50, 0);
  describe(50, 1);
  CHECK(kept.newest()->step == 99);
}

TEST_CASE("a scheduler shows a measured step while the call still runs") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  actors::messages::step_done described;
  described.generation = here.with.generation;
  described.call = 0;
  for (int device = 0; device < here.num_devices(); ++device) {
    described.device = static_cast<std::uint32_t>(device);
    described.actions = {{described.device, described.device, 0, action_kind::forward, 5, 9}};
    here.actors.send(here.scheduler, described);
  }
  auto report = inspected(here);
  REQUIRE(report.measured);
  CHECK(report.measured->step == 1);
  CHECK(report.measured->actions.size() == static_cast<std::size_t>(here.num_devices()));
  CHECK_FALSE(report.last_training);
}

TEST_CASE("devices with steps of unlike length describe steps in common, about four a second") {
  actors::devices::step_sampling fast, slow;
  std::int64_t fast_ns = 1'000'000'000, slow_ns = fast_ns;
  int num_fast = 0, num_common = 0;
  constexpr std::uint64_t num_steps = 20'000;
  for (std::uint64_t step = 0; step < num_steps; ++step) {
    bool first = fast.takes(step, 16, fast_ns += 2'000'000);
    bool second = slow.takes(step, 16, slow_ns += 2'100'000);
    num_fast += first;
    num_common += first && second;
  }
  CHECK(num_fast > 20);
  CHECK(num_fast < 180);  // in 40 seconds
  CHECK(num_common > num_fast / 3);
  CHECK((fast.every() & (fast.every() - 1)) == 0);
  CHECK_FALSE(
      actors::devices::step_sampling().takes(0, actors::devices::step_sampling::most_actions + 1, fast_ns));
}
