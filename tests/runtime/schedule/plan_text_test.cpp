#include "troupe/schedule/plan_text.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("plans have the same text if and only if they are equal") {
  const plan_options usual{schedule_kind::one_f_one_b, 4, 8, 2};
  auto text = plan_text(make_plan(usual));
  CHECK(text == plan_text(make_plan(usual)));
  auto differs = [&](auto change) {
    auto other = usual;
    change(other);
    return plan_text(make_plan(other)) != text;
  };
  CHECK(differs([](plan_options& other) { other.kind = schedule_kind::gpipe; }));
  CHECK(differs([](plan_options& other) { other.num_stages = 5; }));
  CHECK(differs([](plan_options& other) { other.num_microbatches = 4; }));
  CHECK(differs([](plan_options& other) { other.num_devices = 4; }));
  CHECK(differs([](plan_options& other) { other.reductions = {{0, 3}}; }));
  auto swapped = make_plan(usual);
  std::swap(swapped.devices[0][0], swapped.devices[0][1]);
  CHECK(plan_text(swapped) != text);
}
