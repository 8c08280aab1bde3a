#include "troupe/scheduler/state/step_tracker.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

using namespace troupe;
using namespace troupe::actors::scheduler;
using Catch::Matchers::WithinRel;

namespace {

actors::messages::step_done report(std::uint64_t step, std::uint32_t device, std::int64_t begin_ns = 0,
                                   std::int64_t end_ns = 0, std::int64_t busy_ns = 0,
                                   std::int64_t copy_ns = 0, std::uint32_t peak = 0) {
  actors::messages::step_done done;
  done.step = step;
  done.device = device;
  done.first_begin_ns = begin_ns;
  done.last_end_ns = end_ns;
  done.busy_ns = busy_ns;
  done.copy_ns = copy_ns;
  done.peak_activations = peak;
  return done;
}

}  // namespace

TEST_CASE("a step is complete when every device has done it") {
  step_tracker ledger(2, 5);
  CHECK(ledger.complete() == 5);
  CHECK(ledger.add(report(5, 0)).empty());
  CHECK(ledger.complete() == 5);
  auto finished = ledger.add(report(5, 1));
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].step == 5);
  CHECK(ledger.complete() == 6);
}

TEST_CASE("one device's report can complete no more than one step, however far the others are") {
  step_tracker ledger(2, 0);
  for (std::uint64_t step = 0; step < 3; ++step) CHECK(ledger.add(report(step, 0)).empty());
  for (std::uint64_t step = 0; step < 3; ++step) {
    auto finished = ledger.add(report(step, 1));
    REQUIRE(finished.size() == 1);
    CHECK(finished[0].step == step);
  }
}

TEST_CASE("metrics add up over devices") {
  step_tracker ledger(2, 0);
  auto last = report(0, 1);
  last.metrics = {3.5, 8, 5};
  ledger.add(last);
  auto finished = ledger.add(report(0, 0));
  REQUIRE(finished.size() == 1);
  CHECK(finished[0].metrics == program::step_metrics{3.5, 8, 5});
}

TEST_CASE(
    "the span of a step is from the first begin to the last end on any device, its copy time the longest") {
  step_tracker ledger(2, 0);
  ledger.add(report(0, 0, 3'000'000'000, 7'000'000'000, 2'000'000'000, 500'000'000));
  auto finished = ledger.add(report(0, 1, 1'000'000'000, 5'000'000'000, 4'000'000'000, 250'000'000));
  REQUIRE(finished.size() == 1);
  CHECK_THAT(finished[0].span_s, WithinRel(6.0, 1e-9));
  CHECK_THAT(finished[0].busy_s, WithinRel(3.0, 1e-9));
  CHECK_THAT(finished[0].copy_s, WithinRel(0.5, 1e-9));
  CHECK_THAT(ledger.timing().bubble, WithinRel(0.5, 1e-9));
}

TEST_CASE("timings are medians over the steps, the peak is the greatest") {
  step_tracker ledger(1, 0);
  auto second = [](std::int64_t seconds) { return seconds * 1'000'000'000; };
  ledger.add(report(0, 0, second(1), second(2), second(1), 0, 2));
  ledger.add(report(1, 0, second(10), second(110), second(50), 0, 4));
  ledger.add(report(2, 0, second(200), second(202), second(1), 0, 3));
  auto timing = ledger.timing();
  CHECK_THAT(timing.span_s, WithinRel(2.0, 1e-9));
  CHECK_THAT(timing.busy_s, WithinRel(1.0, 1e-9));
  CHECK_THAT(timing.bubble, WithinRel(0.5, 1e-9));
  CHECK(timing.peak_activations == 4);
}

TEST_CASE("without a complete step there is no timing") {
  CHECK(step_tracker(2, 0).timing() == actors::job::step_timing{});
}

TEST_CASE("a report of a device that the job does not have is refused") {
  step_tracker ledger(2, 0);
  CHECK_THROWS_AS(ledger.add(report(0, 2)), std::out_of_range);
}

TEST_CASE("the metrics of a step are added up in the order of devices, whichever reports first") {
  std::vector<double> losses = {1e16, 1, -1e16, 3};
  auto sum_in = [&](std::vector<std::uint32_t> order) {
    step_tracker ledger(4, 0);
    std::vector<finished_step> finished;
    for (auto device : order) {
      auto done = report(0, device);
      done.metrics = {losses[device], 1, 0};
      finished = ledger.add(done);
    }
    REQUIRE(finished.size() == 1);
    CHECK(finished[0].metrics.num_samples == 4);
    return finished[0].metrics.loss_sum;
  };
  auto expected = ((losses[0] + losses[1]) + losses[2]) + losses[3];
  CHECK(sum_in({0, 1, 2, 3}) == expected);
  CHECK(sum_in({2, 0, 3, 1}) == expected);
}
