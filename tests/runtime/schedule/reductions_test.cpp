#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/simulation/simulate.hpp"
#include "troupe/schedule/text/draw.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::action_from;
using troupe::action_kind;
using troupe::plan;
using troupe::schedule_kind;
using troupe::schedule::check_plan;

namespace {

/// First and last stage combine something, then all do.
plan two_reductions(int num_stages, int num_devices, schedule_kind kind = schedule_kind::one_f_one_b) {
  std::vector<int> all(static_cast<std::size_t>(num_stages));
  std::iota(all.begin(), all.end(), 0);
  return troupe::make_plan({kind, num_stages, 2, num_devices, {{0, num_stages - 1}, all}});
}

std::string text_of(const std::vector<troupe::action>& actions) {
  std::string text;
  for (const auto& op : actions) text += (text.empty() ? "" : " ") + to_string(op);
  return text;
}

std::string findings_of(const plan& checked) {
  std::string text;
  for (const auto& each : troupe::schedule::check_plan(checked)) text += each + "\n";
  return text;
}

}  // namespace

TEST_CASE("reductions come after the last weight gradient of each stage that takes part") {
  auto made = two_reductions(3, 3);
  CHECK(text_of(made.devices[0]) == "0F0 0F1 0B0 0B1 0R0 0R1 0A");
  CHECK(text_of(made.devices[1]) == "1F0 1F1 1B0 1B1 1R1 1A");
  CHECK(text_of(made.devices[2]) == "2F0 2B0 2F1 2B1 2R0 2R1 2A");
  CHECK(action_from("2R1") == troupe::action{2, action_kind::reduce_gradient, 1});
}

TEST_CASE("plans with reductions are sound on any number of devices, in every schedule") {
  for (auto kind : {schedule_kind::gpipe, schedule_kind::one_f_one_b})
    for (int stages = 2; stages <= 5; ++stages)
      for (int devices = 1; devices <= stages; ++devices) {
        INFO(stages << " stages on " << devices << " devices");
        CHECK(findings_of(two_reductions(stages, devices, kind)).empty());
      }
}

TEST_CASE(
    "a reduction waits for the earlier actions of the other stages and for the transfer of their shares") {
  auto made = two_reductions(2, 2);
  troupe::action_costs costs{
      .forward = 1, .input_gradient = 1, .weight_gradient = 1, .communication = 10, .reduction = 3};
  auto ran = troupe::simulate(made, costs);
  const auto& first = ran.devices[0];
  const auto& second = ran.devices[1];
  auto at = first.size() - 3;
  CHECK(first[at].begin == std::max(first[at - 1].end, second[at - 1].end + 10));
  CHECK(second[at].begin == first[at - 1].end + 10);
  CHECK(first[at + 1].begin == second[at].end + 10);
  CHECK(ran.makespan == std::max(first.back().end, second.back().end));
  CHECK(ran.idle[0] == ran.makespan - 2 * 3 - 2 * 3);
}

TEST_CASE("reductions cost nothing by default, and keep no activations") {
  auto plain = troupe::simulate(troupe::make_plan({schedule_kind::one_f_one_b, 4, 8, 4, {}}), {});
  auto reduced =
      troupe::simulate(troupe::make_plan({schedule_kind::one_f_one_b, 4, 8, 4, {{0, 3}, {0, 1, 2, 3}}}), {});
  CHECK(reduced.makespan == plain.makespan);
  CHECK(reduced.idle == plain.idle);
  CHECK(reduced.peak_activations == plain.peak_activations);
}

TEST_CASE("a reduction that is missing, duplicated, unknown, too early or out of order is found") {
  auto broken = [](auto change) {
    auto made = two_reductions(2, 2);
    change(made);
    return findings_of(made);
  };
  CHECK(broken([](plan&) {}).empty());
  CHECK_THAT(broken([](plan& made) { made.devices[0].erase(made.devices[0].begin() + 5); }),
             ContainsSubstring("0R1 is missing"));
  CHECK_THAT(
      broken([](plan& made) { made.devices[0].insert(made.devices[0].begin() + 5, made.devices[0][5]); }),
      ContainsSubstring("0R1 occurs several times"));
  CHECK_THAT(broken([](plan& made) { made.devices[1].push_back(action_from("1R2")); }),
             ContainsSubstring("1R2 is no reduction of the plan"));
  CHECK_THAT(broken([](plan& made) { made.devices[1].push_back(action_from("0R1")); }),
             ContainsSubstring("device 1 does 0R1, but stage 0 is on device 0"));
  CHECK_THAT(broken([](plan& made) { std::swap(made.devices[0][3], made.devices[0][4]); }),
             ContainsSubstring("0B1 comes after 0R0"));
  CHECK_THAT(broken([](plan& made) { std::swap(made.devices[0][4], made.devices[0][5]); }),
             ContainsSubstring("0R0 comes after 0R1"));
}

TEST_CASE("a reduction before another stage's weight gradient on one device is a deadlock") {
  auto made = troupe::make_plan({schedule_kind::gpipe, 2, 1, 1, {{0, 1}}});
  REQUIRE(text_of(made.devices[0]) == "0F0 1F0 1B0 0B0 0R0 1R0 0A 1A");
  made.devices[0] = {action_from("0F0"), action_from("1F0"), action_from("1B0"), action_from("1R0"),
                     action_from("0B0"), action_from("0R0"), action_from("0A"),  action_from("1A")};
  CHECK_THAT(findings_of(made), ContainsSubstring("deadlock: 1R0 waits for 0B0"));
}

TEST_CASE("a reduction among missing stages, out of order, or without gradients is refused") {
  for (std::vector<int> stages : {std::vector<int>{}, {0, 2}, {-1, 0}, {1, 0}, {0, 0}})
    CHECK_THROWS_AS(troupe::make_plan({schedule_kind::gpipe, 2, 1, 1, {stages}}), troupe::bad_input);
  CHECK_THROWS_AS(troupe::make_plan({schedule_kind::forward_only, 2, 1, 1, {{0, 1}}}), troupe::bad_input);
}

TEST_CASE("a drawing shows reductions that take time, and names them") {
  auto ran = troupe::simulate(two_reductions(2, 2), {.reduction = 1});
  CHECK_THAT(troupe::schedule::draw_text(ran, {100, false}), ContainsSubstring("reduction"));
  auto plain = troupe::simulate(two_reductions(2, 2), {});
  CHECK_THAT(troupe::schedule::draw_text(plain, {100, false}), !ContainsSubstring("reduction"));
}
