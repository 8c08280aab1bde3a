#include <catch2/catch_test_macros.hpp>

#include "runtime/collective/cases/fault_cases.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("members survive the loss of one, make a new group and get right bytes: seeds 0 to 4") {
  try_fault_cases(0, 5, on_one_host);
}
TEST_CASE("members survive the loss of one, make a new group and get right bytes: seeds 5 to 9", "[many]") {
  try_fault_cases(5, 10, on_one_host);
}
TEST_CASE("members survive the loss of one, make a new group and get right bytes: seeds 10 to 99",
          "[.soak]") {
  try_fault_cases(10, 100, on_one_host);
}

TEST_CASE("late writes of a stopped member reach no tensor of another member: seed 101", "[many]") {
  try_large_sums_with_stopped_member(101, 102, on_one_host);
}
TEST_CASE("late writes of a stopped member reach no tensor of another member: seeds 102 and 103", "[.soak]") {
  try_large_sums_with_stopped_member(102, 104, on_one_host);
}
