#include <catch2/catch_test_macros.hpp>

#include "runtime/collective/cases/fault_cases.hpp"

using namespace troupe;
using troupe::testing::try_fault_cases;

TEST_CASE(
    "members over the network survive the loss of one, make a new group and get right bytes: seeds 0 to 19") {
  try_fault_cases(0, 20, group_path::network);
}
TEST_CASE(
    "members over the network survive the loss of one, make a new group and get right bytes: seeds 20 to "
    "39") {
  try_fault_cases(20, 40, group_path::network);
}
