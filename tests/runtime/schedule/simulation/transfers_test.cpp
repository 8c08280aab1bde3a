// What goes to other lanes over the links of devices, as it is simulated.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/action_graph.hpp"
#include "troupe/schedule/simulation/simulate.hpp"
#include "troupe/schedule/text/plan_csv.hpp"

using namespace troupe;
using Catch::Matchers::WithinRel;
using enum action_kind;

namespace {

plan replicas_of(const std::string& csv) { return schedule::read_plan_csv(csv, "plan.csv", {.mesh = {2}}); }

double makespan(const plan& of, const action_costs& costs) { return simulate(of, costs).makespan; }

}  // namespace

TEST_CASE("a sum sends (n - 1) / n of its bytes twice, an unshard once, and one lane sends nothing") {
  link_model link{.bytes_per_time = 100, .latency = 0.5};
  CHECK_THAT(transfer_time(all_reduce, 1000, 4, link), WithinRel(2 * (7.5 + 0.5)));
  CHECK_THAT(transfer_time(unshard, 1000, 4, link), WithinRel(7.5 + 0.5));
  CHECK(transfer_time(all_reduce, 1000, 1, link) == 0);
  CHECK_THROWS_AS(transfer_time(all_reduce, 1000, 2, {0}), bad_input);
  CHECK_THROWS_AS(transfer_time(all_reduce, -1, 2, link), bad_input);
  CHECK_THROWS_AS(transfer_time(forward, 1, 2, link), std::invalid_argument);
}

TEST_CASE("gradients leave when the last weight gradient has ended, or bucket by bucket within it") {
  auto of = replicas_of("0F0,0B0\n");  // F 0 to 1, B 1 to 3
  CHECK(makespan(of, {}) == 3);
  CHECK(makespan(of, {.sum_transfer = 4}) == 7);
  CHECK(makespan(of, {.sum_transfer = 4, .num_buckets = 2}) == 6);    // the first at 2, and the link is busy
  CHECK(makespan(of, {.sum_transfer = 1, .num_buckets = 2}) == 3.5);  // the last one leaves at 3
  CHECK(makespan(of, {.apply = 1, .sum_transfer = 4}) == 8);
  // B computes weight gradients from 2 on.
  CHECK(makespan(of, {.hands_on_early = true, .sum_transfer = 4, .num_buckets = 2}) == 6.5);
}

TEST_CASE("gradients of a stage are under way while its device computes another one's") {
  auto of = replicas_of("0F0,1F0,1B0,0B0\n");      // 1B0 ends at 4, 0B0 at 6
  CHECK(makespan(of, {.sum_transfer = 2}) == 8);   // stage 1's until 6, stage 0's until 8
  CHECK(makespan(of, {.sum_transfer = 3}) == 10);  // one after the other on one link
  auto ran = simulate(of, {.sum_transfer = 3});
  auto begin_of = [&](const char* name) {
    return std::ranges::find(ran.devices[0], action_from(name), &timed_action::op)->begin;
  };
  CHECK(begin_of("1G") == 7);
  CHECK(begin_of("0G") == 10);
  CHECK(ran.idle[0] == 4);
}

TEST_CASE("a tensor of the lane waits for the bucket that is under way, and for no other") {
  auto of = replicas_of("0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n");  // 3B0 ends at 6, 1B0 at 10
  auto begin_of_last = [&](const action_costs& costs) { return simulate(of, costs).devices[0][3].begin; };
  CHECK(begin_of_last({}) == 10);
  CHECK(begin_of_last({.sum_transfer = 4}) == 10);  // 3G has left
  CHECK(begin_of_last({.sum_transfer = 5}) == 11);  // 3G until 11, and 1G waits behind the gradient
  // Buckets of 1, the first of which leave within the backward: gradients wait until 6.4, 8.8 and 11.4.
  CHECK_THAT(begin_of_last({.sum_transfer = 5, .num_buckets = 5}), WithinRel(11.4));
}

TEST_CASE("parameters are under way from U to the first use") {
  auto of = replicas_of("0U,1U,0F0,1F0,1B0,0B0\n");
  CHECK(makespan(of, {.unshard_transfer = 0.5}) == 6.5);  // 0F0 waits, 1F0 does not
  CHECK(makespan(of, {.unshard_transfer = 3}) == 11);     // 0F0 at 3, 1F0 at 6, then 1B0 and 0B0
  auto late = replicas_of("0U,0F0,1U,1F0,1B0,0B0\n");
  CHECK(makespan(late, {.unshard_transfer = 0.5}) == 7);  // both wait
}

TEST_CASE("a plan of one lane has nothing on its links") {
  auto of = schedule::read_plan_csv("0U,0F0,0B0\n", "plan.csv");
  CHECK(schedule::action_graph(of).transfers.empty());
  CHECK(makespan(of, {.sum_transfer = 5, .unshard_transfer = 5}) == 3);
}

TEST_CASE("each lane sends its gradients, stage by stage, and its shards") {
  auto of = schedule::read_plan_csv("0U,0F0,0B0\n1F0,1B0\n", "plan.csv", {.mesh = {2}});
  schedule::action_graph graph(of);
  // 0U 0F0 0B0 0G 0A, 1F0 1B0 1G 1A, and the same again
  std::vector<std::tuple<std::string, int, int>> found;
  for (const auto& each : graph.transfers) found.emplace_back(to_string(each.op), each.start, each.done);
  CHECK(found ==
        std::vector<std::tuple<std::string, int, int>>{
            {"0U", 0, 1}, {"0G", 2, 3}, {"1G", 6, 7}, {"0U", 9, 10}, {"0G", 11, 12}, {"1G", 15, 16}});
}

TEST_CASE("costs of transfers that cannot be are refused") {
  auto of = replicas_of("0F0,0B0\n");
  CHECK_THROWS_AS(simulate(of, {.sum_transfer = -1}), bad_input);
  CHECK_THROWS_AS(simulate(of, {.unshard_transfer = -1}), bad_input);
  CHECK_THROWS_AS(simulate(of, {.num_buckets = 0}), bad_input);
}
