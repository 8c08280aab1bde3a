#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/check_plan.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/schedule/simulate.hpp"

using Catch::Matchers::ContainsSubstring;
using enum troupe::schedule_kind;

namespace {

std::string notation(const std::vector<troupe::action>& actions) {
  std::string text;
  for (const auto& op : actions) text.append(text.empty() ? "" : " ").append(to_string(op));
  return text;
}

std::vector<troupe::action> of_stage(const std::vector<troupe::action>& actions, int stage) {
  std::vector<troupe::action> own;
  std::copy_if(actions.begin(), actions.end(), std::back_inserter(own),
               [stage](const troupe::action& op) { return op.stage == stage; });
  return own;
}

std::string refusal(const troupe::plan_options& options) {
  try {
    troupe::make_plan(options);
  } catch (const troupe::bad_input& problem) {
    return problem.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("GPipe does all forwards, then all backwards in ascending order") {
  auto made = troupe::make_plan({.kind = gpipe, .num_stages = 2, .num_microbatches = 3, .num_devices = 2});
  CHECK(notation(made.devices[0]) == "0F0 0F1 0F2 0B0 0B1 0B2");
  CHECK(notation(made.devices[1]) == "1F0 1F1 1F2 1B0 1B1 1B2");
}

TEST_CASE("1F1B warms up, alternates and drains") {
  auto made =
      troupe::make_plan({.kind = one_f_one_b, .num_stages = 3, .num_microbatches = 4, .num_devices = 3});
  CHECK(notation(made.devices[0]) == "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  CHECK(notation(made.devices[1]) == "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3");
  CHECK(notation(made.devices[2]) == "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3");
}

TEST_CASE("1F1B with fewer microbatches than stages") {
  auto made =
      troupe::make_plan({.kind = one_f_one_b, .num_stages = 4, .num_microbatches = 2, .num_devices = 4});
  CHECK(notation(made.devices[0]) == "0F0 0F1 0B0 0B1");
  CHECK(notation(made.devices[2]) == "2F0 2F1 2B0 2B1");
  CHECK(notation(made.devices[3]) == "3F0 3B0 3F1 3B1");
}

TEST_CASE("a plan of forwards only has no other actions") {
  auto made =
      troupe::make_plan({.kind = forward_only, .num_stages = 2, .num_microbatches = 2, .num_devices = 2});
  CHECK(notation(made.devices[0]) == "0F0 0F1");
  CHECK(notation(made.devices[1]) == "1F0 1F1");
}

TEST_CASE("stages lie on devices in nearly equal blocks") {
  auto made = troupe::make_plan({.kind = gpipe, .num_stages = 7, .num_microbatches = 1, .num_devices = 3});
  CHECK(made.device_of_stage == std::vector<int>{0, 0, 0, 1, 1, 2, 2});
}

TEST_CASE("one device runs all stages of a microbatch back to back") {
  auto made =
      troupe::make_plan({.kind = one_f_one_b, .num_stages = 2, .num_microbatches = 2, .num_devices = 1});
  CHECK(notation(made.devices[0]) == "0F0 1F0 0F1 1B0 1F1 0B0 1B1 0B1");
}

TEST_CASE("every plan is sound, keeps each stage's order and is not slower than one large stage per device") {
  for (auto kind : {gpipe, one_f_one_b, forward_only}) {
    for (int stages : {1, 2, 3, 4, 5, 8, 11, 16}) {
      for (int microbatches : {1, 2, 3, 4, 7, 8, 32}) {
        auto alone = troupe::make_plan(
            {.kind = kind, .num_stages = stages, .num_microbatches = microbatches, .num_devices = stages});
        for (int devices = 1; devices <= stages; ++devices) {
          CAPTURE(to_string(kind), stages, microbatches, devices);
          auto made = troupe::make_plan(
              {.kind = kind, .num_stages = stages, .num_microbatches = microbatches, .num_devices = devices});
          REQUIRE(troupe::check_plan(made).empty());
          for (int stage = 0; stage < stages; ++stage) {
            auto device = static_cast<std::size_t>(made.device_of_stage[static_cast<std::size_t>(stage)]);
            REQUIRE(of_stage(made.devices[device], stage) == alone.devices[static_cast<std::size_t>(stage)]);
          }
          int most_stages = (stages + devices - 1) / devices;
          int per_microbatch = kind == forward_only ? 1 : 3;
          REQUIRE(troupe::simulate(made, {}).makespan <=
                  (microbatches + devices - 1) * most_stages * per_microbatch);
        }
      }
    }
  }
}

TEST_CASE("the same options make the same plan") {
  troupe::plan_options options{
      .kind = one_f_one_b, .num_stages = 9, .num_microbatches = 13, .num_devices = 4};
  CHECK(troupe::make_plan(options) == troupe::make_plan(options));
}

TEST_CASE("impossible options are refused with what to change") {
  CHECK_THAT(refusal({.num_stages = 0}), ContainsSubstring("0 stages") && ContainsSubstring("at least 1"));
  CHECK_THAT(refusal({.num_microbatches = -2}),
             ContainsSubstring("-2 microbatches") && ContainsSubstring("at least 1"));
  CHECK_THAT(refusal({.num_devices = 0}), ContainsSubstring("0 devices") && ContainsSubstring("at least 1"));
  CHECK_THAT(refusal({.num_stages = 2, .num_devices = 3}),
             ContainsSubstring("3 devices for 2 stages") && ContainsSubstring("at most as many"));
  CHECK_THAT(refusal({.num_stages = 2'000'000'000, .num_microbatches = 2'000'000'000}),
             ContainsSubstring("fewer"));
}
