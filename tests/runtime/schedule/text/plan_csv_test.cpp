#include "troupe/schedule/text/plan_csv.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>

#include "runtime/schedule/drawn_plans.hpp"
#include "support/text_of.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/checks/check_plan.hpp"
#include "troupe/schedule/gradient_order.hpp"
#include "troupe/schedule/simulation/simulate.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using enum troupe::schedule_kind;

namespace {

std::string refusal(const std::string& text) {
  try {
    troupe::schedule::read_plan_csv(text, "plan.csv");
  } catch (const troupe::bad_input& problem) {
    return problem.what();
  }
  return "accepted";
}

/// The file of tests/runtime/schedule/pytorch_plans, read.
troupe::plan pytorch_plan(const std::string& name) {
  return troupe::schedule::read_plan_csv(
      troupe::testing::text_of(std::filesystem::path(PYTORCH_PLANS) / name), name);
}

}  // namespace

TEST_CASE("a plan that is written and read again has the same actions on the same devices") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto options = troupe::testing::drawn_options(6, 5, random);
    // Those of several optimizer steps stand elsewhere on devices with several stages.
    if (options.flush_every > 1) options.reductions.clear();
    auto drawn = troupe::make_plan(options);
    CAPTURE(seed);
    auto read = troupe::schedule::read_plan_csv(troupe::schedule::to_csv(drawn), "plan.csv",
                                                {drawn.edges, drawn.reductions});
    drawn.kind = drawn.kind == forward_only ? forward_only : custom;
    REQUIRE(read == drawn);
  }
}

TEST_CASE("reductions and optimizer steps are not written") {
  auto made = troupe::make_plan(
      {.kind = zb_h1, .num_stages = 2, .num_microbatches = 2, .num_devices = 2, .reductions = {{0, 1}}});
  CHECK(troupe::schedule::to_csv(made) == "0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1I1,1W0,1W1\n");
}

TEST_CASE("empty cells, comments, blanks, ends of lines, groups and communication of PyTorch are read") {
  auto plain = troupe::schedule::read_plan_csv("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "plan.csv");
  CHECK(troupe::schedule::read_plan_csv(
            "# a comment, with 9F9\r\n0F0,0F1,,\"\",0B0,0B1\r\n,1F0, 1B0 ,1F1,1B1\r\n\r\n", "") == plain);
  CHECK(troupe::schedule::read_plan_csv("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD\n"
                                        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1",
                                        "") == plain);
  CHECK(troupe::schedule::read_plan_csv("0F0,0F1,0B0,0B1\n1F0,(1B0;1F1)OVERLAP_F_B,1B1\n", "") == plain);
  CHECK(troupe::schedule::read_plan_csv(
            "\xef\xbb\xbf\"0F0\",\"0F1\",\"0B0\",\"0B1\"\n\"1F0\",\"1B0\",\"1F1\",\"1B1\"\n", "") == plain);
  CHECK(plain.kind == custom);
  CHECK(plain.devices[1].back() == troupe::action_from("1A"));
  CHECK(troupe::schedule::read_plan_csv("0F0,1F0\n", "").kind == forward_only);
}

TEST_CASE("what cannot be read is named with line, rank and cell") {
  CHECK_THAT(refusal("2147483647F0\n"), ContainsSubstring("line 1 (rank 0), cell 1: with 2147483647F0"));
  CHECK_THAT(refusal("# ours\n0F0,0B0\n1F0,,1X0\n"),
             ContainsSubstring("plan.csv: line 3 (rank 1), cell 3: '1X0' is no action") &&
                 ContainsSubstring("for example 2F0"));
  CHECK_THAT(refusal("0F0,0B0,0A\n"), ContainsSubstring("line 1 (rank 0), cell 3: 0A has no place"));
  CHECK_THAT(refusal("0F0,0B0,0R0\n"), ContainsSubstring("0R0 has no place"));
  CHECK_THAT(refusal("(0F0;0B0\n"), ContainsSubstring("cell 1: '(0F0;0B0' is no group") &&
                                        ContainsSubstring("(0F7;7B3)OVERLAP_F_B"));
  CHECK_THAT(refusal("(0F0;0B0)OVERLAP\n"), ContainsSubstring("is no group"));
  CHECK_THAT(refusal(std::string(1000, 'a')),
             ContainsSubstring("'" + std::string(40, 'a') + "..' (1000 bytes) is no action"));
  CHECK_THAT(refusal("PK\3\x1b[2J\n"), ContainsSubstring("'PK??[2J' is no action"));  // an archive
  CHECK_THAT(refusal("SEND_F0\n"), ContainsSubstring("'SEND_F0' is no action"));
  CHECK_THAT(refusal("0F0;0B0\n"), ContainsSubstring("'0F0;0B0' is no action"));
}

TEST_CASE("a file without actions, a rank without actions and a stage without a rank are refused") {
  CHECK_THAT(refusal(""), ContainsSubstring("no action in it"));
  CHECK_THAT(refusal("# only a comment\n\n"), ContainsSubstring("no action in it"));
  CHECK_THAT(refusal("0F0,0B0\n\n1F0,1B0\n"), ContainsSubstring("line 2 is empty, but rank 1 needs actions"));
  CHECK_THAT(refusal("0F0,0B0\n,,\n"), ContainsSubstring("line 2 has no action. Give rank 1 some"));
  CHECK_THAT(refusal("0F0,0B0,2F0,2B0\n"),
             ContainsSubstring("no rank runs stage 1, but there are stages up to 2"));
  CHECK_THAT(refusal("0F0,999999999F0\n"), ContainsSubstring("cell 2") && ContainsSubstring("1048576"));
  CHECK_THAT(refusal("0F0,0F2147483647\n"), ContainsSubstring("Number both from 0"));
}

TEST_CASE("missing, doubled, unordered and misplaced actions are named with their cells") {
  CHECK_THAT(refusal("0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n"), EndsWith("1B1 is missing from line 2 (rank 1)"));
  CHECK_THAT(refusal("0F0,0F0,0B0\n"),
             ContainsSubstring("0F0 [line 1 (rank 0), cell 1; line 1 (rank 0), cell 2] occurs 2 times"));
  CHECK_THAT(refusal("0F1,0F0,0B0,0B1\n"),
             ContainsSubstring("0F0 [line 1 (rank 0), cell 2] after 0F1 [line 1 (rank 0), cell 1]") &&
                 ContainsSubstring("ascending"));
  CHECK_THAT(refusal("0F0,0F1,0F2,0I0,0I1,0I2,0W1,0W0,0W2\n"),
             ContainsSubstring("0W0 [line 1 (rank 0), cell 8] after 0W1"));
  CHECK_THAT(refusal("0F0,0B0\n1F0,1B0,0F1,0B1,1F1,1B1\n"),
             ContainsSubstring("device 1 does 0F1 [line 2 (rank 1), cell 3], but stage 0 is on device 0"));
}

TEST_CASE("the circle of a deadlock is told with the cells of the actions that wait") {
  CHECK_THAT(
      refusal("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"),
      ContainsSubstring("deadlock: 0B0 [line 1 (rank 0), cell 2] waits for 1B0 [line 2 (rank 1), cell 3], "
                        "which device 1 only does after 1F1 [line 2 (rank 1), cell 2]; 1F1") &&
          ContainsSubstring("waits for 0F1 [line 1 (rank 0), cell 3], which device 0 only does after 0B0"));
}

TEST_CASE("plans that PyTorch dumped are sound, and ours are the same") {
  struct dumped {
    std::string file;
    troupe::schedule_kind kind;
    int devices;
    int stages;
    int microbatches;
  };
  const std::vector<dumped> files = {
      {"interleaved_1f1b_p2_v2_m4.csv", interleaved_1f1b, 2, 4, 4},
      {"interleaved_1f1b_p3_v3_m6.csv", interleaved_1f1b, 3, 9, 6},
      {"interleaved_1f1b_p4_v2_m8_comms.csv", interleaved_1f1b, 4, 8, 8},
      {"zb_v_p2_m2.csv", zb_v, 2, 4, 2},
      {"zb_v_p3_m6.csv", zb_v, 3, 6, 6},
      {"zb_v_p4_m8_comms.csv", zb_v, 4, 8, 8},
      {"dualpipe_v_p2_m4.csv", dualpipe_v, 2, 4, 4},
      {"dualpipe_v_p3_m7.csv", dualpipe_v, 3, 6, 7},
      {"dualpipe_v_p4_m10_comms.csv", dualpipe_v, 4, 8, 10},
  };
  for (const auto& each : files) {
    CAPTURE(each.file);
    auto read = pytorch_plan(each.file);
    for (auto& list : read.devices)
      std::erase_if(list, [](const troupe::action& op) { return troupe::is_of_storage(op.kind); });
    auto made = troupe::make_plan({.kind = each.kind,
                                   .num_stages = each.stages,
                                   .num_microbatches = each.microbatches,
                                   .num_devices = each.devices});
    made.kind = custom;
    CHECK(read == made);
  }
}

TEST_CASE("PyTorch's breadth-first plans are sound, and add weight gradients in descending order") {
  for (const auto* name :
       {"looped_bfs_p2_v2_m4.csv", "looped_bfs_p3_v1_m3.csv", "looped_bfs_p4_v2_m8_comms.csv"}) {
    CAPTURE(name);
    auto read = pytorch_plan(name);
    CHECK(troupe::schedule::check_plan(read).empty());
    CHECK(troupe::schedule::gradient_order_of(read) == troupe::schedule::gradient_order::descending);
    CHECK(troupe::simulate(read, {}).makespan > 0);
  }
  CHECK(troupe::schedule::gradient_order_of(pytorch_plan("zb_v_p3_m6.csv")) ==
        troupe::schedule::gradient_order::ascending);
}

TEST_CASE("a plan of PyTorch that no kind of ours makes is read and simulated") {
  auto read = pytorch_plan("interleaved_zero_bubble_p2_v2_m4.csv");
  CHECK(read.num_stages == 4);
  CHECK(read.num_microbatches == 4);
  CHECK(read.device_of_stage == std::vector<int>{0, 1, 0, 1});
  CHECK(troupe::schedule::check_plan(read).empty());
  CHECK(troupe::simulate(read, {}).makespan >= 24);
}
