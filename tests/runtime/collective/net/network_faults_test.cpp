#include <catch2/catch_test_macros.hpp>

#include "runtime/collective/cases/fault_cases.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE(
    "members over the network survive the loss of one, make a new group and get right bytes: seeds 0 to 3") {
  try_fault_cases(0, 4, over_network);
}
TEST_CASE(
    "members over the network survive the loss of one, make a new group and get right bytes: seeds 4 to 99",
    "[.soak]") {
  try_fault_cases(4, 100, over_network);
}
