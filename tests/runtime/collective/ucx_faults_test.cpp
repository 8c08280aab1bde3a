#include <catch2/catch_test_macros.hpp>

#include "runtime/collective/cases/fault_cases.hpp"

using namespace troupe;
using troupe::testing::try_fault_cases;

TEST_CASE("members survive the loss of one, make a new group and get right bytes: seeds 0 to 24") {
  try_fault_cases(0, 25, group_path::nearest);
}
TEST_CASE("members survive the loss of one, make a new group and get right bytes: seeds 25 to 99",
          "[.soak]") {
  try_fault_cases(25, 100, group_path::nearest);
}

TEST_CASE("what a stopped member goes on to write reaches nobody's tensors") {
  testing::try_large_sums_with_stopped_member(101, 104, group_path::nearest);
}
