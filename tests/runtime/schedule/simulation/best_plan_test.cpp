#include "troupe/schedule/simulation/best_plan.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/schedule_table.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using enum troupe::schedule_kind;

namespace {

/// Four devices, one stage each, eight microbatches; a stage keeps 100 bytes of each.
troupe::schedule::plan_search four_devices() {
  return {.measured = {.num_stages = 4, .num_microbatches = 8, .costs = {}, .bytes_per_chunk = 100},
          .num_devices = 4};
}

}  // namespace

TEST_CASE("the fastest plan is chosen, as all plans simulated say") {
  for (double memory : {400.0, 500.0, 700.0, 1e9}) {
    auto search = four_devices();
    search.memory = memory;
    auto chosen = troupe::schedule::best_plan(search);
    CHECK(chosen.peak_bytes() <= memory);
    for (const auto& row : troupe::schedule::schedule_table())
      for (int v : {1, 2, 3, 4}) {
        bool is_plan = row.chunked ? row.chunked->num_chunks == v || (row.chunked->num_chunks == 0 && v > 1)
                                   : v == 1 && row.kind != forward_only;
        if (!is_plan) continue;
        auto made = troupe::make_plan(
            {.kind = row.kind, .num_stages = 4 * v, .num_microbatches = 8, .num_devices = 4});
        auto ran = troupe::simulate(made, costs_in(search.measured, 4 * v, 8));
        double peak = 0;
        for (int each : ran.peak_activations)
          peak = std::max(peak, each * bytes_in(search.measured, 4 * v, 8));
        CAPTURE(row.name, v, memory);
        if (peak <= memory) CHECK(chosen.ran.makespan <= ran.makespan * (1 + 1e-12));
      }
  }
}

TEST_CASE("with much memory the choice idles less than with little") {
  auto search = four_devices();
  auto fast = troupe::schedule::best_plan(search);
  search.memory = 400;
  auto small = troupe::schedule::best_plan(search);
  CHECK(small.peak_bytes() <= 400);
  CHECK(fast.ran.makespan <= small.ran.makespan);
}

TEST_CASE("of plans that are as fast the one that keeps least is chosen, with the fewest stages") {
  auto search = four_devices();
  search.most_chunks = 1;
  search.measured.costs.weight_gradient = 0;  // 1F1B is as fast as GPipe and ZB-H1
  CHECK(troupe::schedule::best_plan(search).made.kind == one_f_one_b);
  search = four_devices();
  search.num_devices = 1;
  auto alone = troupe::schedule::best_plan(search).made;
  CHECK((alone.kind == one_f_one_b && alone.num_stages == 1));
}

TEST_CASE("kinds and stages of a device can be given") {
  auto search = four_devices();
  search.kinds = {interleaved_1f1b};
  CHECK(troupe::schedule::best_plan(search).made.num_stages == 16);
  search.most_chunks = 2;
  CHECK(troupe::schedule::best_plan(search).made.num_stages == 8);
  search.kinds = {one_f_one_b};
  CHECK(troupe::schedule::best_plan(search).made.kind == one_f_one_b);
}

TEST_CASE("smaller microbatches cost less each, but for what is fixed") {
  troupe::schedule::measured_cut measured{
      .num_stages = 4,
      .num_microbatches = 8,
      .costs = {.forward = 3, .input_gradient = 5, .weight_gradient = 2, .apply = 4},
      .fixed_cost = 1,
      .bytes_per_chunk = 100};
  auto costs = costs_in(measured, 8, 16);
  CHECK(costs.forward == 1.5);
  CHECK(costs.input_gradient == 2);
  CHECK(costs.weight_gradient == 1.25);
  CHECK(costs.apply == 2);
  CHECK(bytes_in(measured, 8, 16) == 25);
}

TEST_CASE("the number of microbatches is chosen between idle time and what each costs besides") {
  auto search = four_devices();
  search.kinds = {one_f_one_b};
  search.num_microbatches = {1, 2, 4, 8, 16, 32};
  CHECK(troupe::schedule::best_plan(search).made.num_microbatches == 32);
  search.measured.fixed_cost = 1;
  CHECK(troupe::schedule::best_plan(search).made.num_microbatches == 1);
  search.measured.fixed_cost = 0.25;
  auto number = troupe::schedule::best_plan(search).made.num_microbatches;
  CHECK(number > 1);
  CHECK(number < 32);
}

TEST_CASE("if nothing fits, it is said by how much and which plan needs least") {
  auto search = four_devices();
  search.memory = 300;
  CHECK_THROWS_WITH(troupe::schedule::best_plan(search),
                    ContainsSubstring("fits into 300 B") &&
                        ContainsSubstring("zb_v with 8 stages and 8 micro") &&
                        ContainsSubstring("400 B, which is 100 B more"));
}

TEST_CASE("a search that is not possible is refused") {
  auto complaint = [](auto change) -> std::string {
    auto search = four_devices();
    change(search);
    try {
      troupe::schedule::best_plan(search);
    } catch (const troupe::bad_input& problem) {
      return problem.what();
    }
    return "accepted";
  };
  using search = troupe::schedule::plan_search;
  CHECK_THAT(complaint([](search& s) { s.num_devices = 0; }), ContainsSubstring("0 devices"));
  CHECK_THAT(complaint([](search& s) { s.most_chunks = 0; }), ContainsSubstring("at most 0 stages"));
  CHECK_THAT(complaint([](search& s) { s.measured.num_stages = 0; }), ContainsSubstring("0 stages"));
  CHECK_THAT(complaint([](search& s) { s.measured.num_microbatches = -1; }),
             ContainsSubstring("-1 microbatches"));
  CHECK_THAT(complaint([](search& s) { s.measured.fixed_cost = 2; }), ContainsSubstring("fixed cost"));
  CHECK_THAT(complaint([](search& s) { s.kinds = {forward_only}; }), ContainsSubstring("forward_only"));
  CHECK_THAT(complaint([](search& s) {
               s.kinds = {dualpipe_v};
               s.num_microbatches = {3};
             }),
             ContainsSubstring("none of the schedules allows"));
}
