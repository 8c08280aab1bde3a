#include "troupe/schedule/simulation/measured.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <stdexcept>

using Catch::Matchers::WithinAbs;
using enum troupe::action_kind;

namespace {

/// Two devices, one microbatch, on a clock that was not zero at the start.
std::vector<std::vector<troupe::timed_action>> recorded() {
  return {{{{0, forward, 0}, 100, 101}, {{0, backward, 0}, 107, 110}},
          {{{1, forward, 0}, 102, 103.5}, {{1, backward, 0}, 103.5, 106.5}}};
}

}  // namespace

TEST_CASE("a measured timeline starts at zero and has span, idle time and peak activations") {
  auto ran = troupe::schedule::measured_timeline(recorded());
  CHECK(ran.devices[0][0].begin == 0);
  CHECK(ran.devices[1][0].begin == 2);
  CHECK(ran.makespan == 10);
  CHECK(ran.idle == std::vector<double>{6, 5.5});
  CHECK(ran.peak_activations == std::vector<int>{1, 1});
}

TEST_CASE("a summary has busy time, idle time and the bubble") {
  auto summary = troupe::schedule::summarize(troupe::schedule::measured_timeline(recorded()));
  CHECK(summary.span == 10);
  CHECK(summary.busy == std::vector<double>{4, 4.5});
  CHECK(summary.idle == std::vector<double>{6, 5.5});
  CHECK_THAT(summary.bubble_fraction, WithinAbs(0.575, 1e-12));
}

TEST_CASE("compared with nominal costs, additional time counts as idle") {
  auto summary = troupe::schedule::summarize(troupe::schedule::measured_timeline(recorded()),
                                             {.forward = 1, .input_gradient = 1, .weight_gradient = 1});
  CHECK(summary.busy == std::vector<double>{3, 3});
  CHECK(summary.idle == std::vector<double>{7, 7});
  CHECK_THAT(summary.bubble_fraction, WithinAbs(0.7, 1e-12));
}

TEST_CASE("the optimizer's step counts as work, and keeps no activations") {
  auto devices = recorded();
  devices[0].push_back({{0, apply, 0}, 110, 112});
  devices[1].push_back({{1, apply, 0}, 106.5, 106.5});
  auto ran = troupe::schedule::measured_timeline(devices);
  CHECK(ran.makespan == 12);
  CHECK(ran.idle == std::vector<double>{6, 7.5});
  CHECK(ran.peak_activations == std::vector<int>{1, 1});
  CHECK(troupe::schedule::summarize(ran, {.apply = 1}).busy == std::vector<double>{4, 4});
}

TEST_CASE("a planned timeline has the same summary") {
  auto made = troupe::make_plan({.num_stages = 4, .num_microbatches = 8, .num_devices = 4});
  auto summary = troupe::schedule::summarize(troupe::simulate(made, {}));
  CHECK(summary.span == 33);
  CHECK(summary.idle == std::vector<double>(4, 9));
  CHECK_THAT(summary.bubble_fraction, WithinAbs(9.0 / 33, 1e-12));
}

TEST_CASE("without measurements the timeline is empty") {
  CHECK(troupe::schedule::summarize(troupe::schedule::measured_timeline({{}, {}})).bubble_fraction == 0);
  auto ran = troupe::schedule::measured_timeline({{}, {{{1, forward, 0}, 5, 6}}});
  CHECK(ran.makespan == 1);
  CHECK(ran.idle == std::vector<double>{1, 0});
}

TEST_CASE("impossible times are refused") {
  CHECK_THROWS_AS(troupe::schedule::measured_timeline({{{{0, forward, 0}, 2, 1}}}), std::invalid_argument);
  CHECK_THROWS_AS(troupe::schedule::measured_timeline({{{{0, forward, 0}, 0, 2}, {{0, forward, 1}, 1, 3}}}),
                  std::invalid_argument);
}
