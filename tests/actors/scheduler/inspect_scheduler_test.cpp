// What a scheduler tells an inspector.
#include <catch2/catch_test_macros.hpp>

#include "one_scheduler.hpp"
#include "troupe/inspector/messages.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

scheduler_report inspected(one_scheduler& here, std::uint64_t after = 0) {
  return ask<scheduler_report>(here.actors, here.scheduler, inspect_scheduler{after}).value.value();
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
  CHECK(report.kind == call_kind::train);
  CHECK(report.step == 2);
  CHECK(report.end_step == 100);
  CHECK(report.hosts.num_devices() == here.num_devices());
  REQUIRE(report.steps.steps.size() == 2);
  CHECK(report.steps.steps[1].step == 2);
  CHECK(report.steps.steps[1].num_samples > 0);
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
