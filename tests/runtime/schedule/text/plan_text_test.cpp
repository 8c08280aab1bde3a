#include "troupe/schedule/text/plan_text.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::schedule;

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
  CHECK(differs([](plan_options& other) { other.device_of_stage = {0, 1, 0, 1}; }));
  CHECK(differs([](plan_options& other) {
    other.edges = {{0, 0, 1, 0}, {1, 0, 2, 0}, {2, 0, 3, 0}, {0, 0, 3, 1}};
  }));
  auto swapped = make_plan(usual);
  std::swap(swapped.devices[0][0], swapped.devices[0][1]);
  CHECK(plan_text(swapped) != text);
}

TEST_CASE("edges stand in the text unless they are a chain's") {
  CHECK(plan_text(make_plan({schedule_kind::gpipe, 3, 1, 3})) ==
        "gpipe, 3 stages, 1 microbatches\n0 1 2 \n0F0 0B0 0A \n1F0 1B0 1A \n2F0 2B0 2A ");
  auto branches = make_plan({.kind = schedule_kind::forward_only,
                             .num_stages = 3,
                             .num_devices = 1,
                             .edges = {{1, 0, 2, 1}, {0, 0, 2, 0}}});
  CHECK(plan_text(branches) ==
        "forward_only, 3 stages, 1 microbatches\nedges 0.0 -> 2.0, 1.0 -> 2.1,\n0 0 0 \n1F0 0F0 2F0 ");
  auto cut = make_plan({schedule_kind::gpipe, 3, 1, 3});
  cut.edges.clear();
  CHECK(plan_text(cut) != plan_text(make_plan({schedule_kind::gpipe, 3, 1, 3})));
}
