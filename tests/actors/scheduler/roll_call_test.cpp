#include "troupe/scheduler/roll_call.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

call_request train(std::uint32_t index, std::uint64_t target) {
  return {index, call_kind::train, 0, target, 0, 0};
}

}  // namespace

TEST_CASE("a call is complete when every process is in it, and no earlier or later one") {
  roll_call calls;
  CHECK_FALSE(calls.is_complete(2, 0));
  calls.enter(1, train(0, 5));
  CHECK_FALSE(calls.is_complete(2, 0));
  calls.enter(0, train(1, 9));
  CHECK_FALSE(calls.is_complete(2, 0));
  CHECK_FALSE(calls.is_complete(2, 1));
  calls.enter(1, train(1, 9));
  CHECK(calls.is_complete(2, 1));
  calls.clear();
  CHECK_FALSE(calls.is_complete(2, 1));
}

TEST_CASE("processes that want the same agree, others are named with what they want") {
  roll_call calls;
  calls.enter(1, train(0, 5));
  calls.enter(0, train(0, 5));
  CHECK_FALSE(calls.disagreement());
  CHECK(calls.request() == train(0, 5));
  calls.enter(1, train(0, 6));
  auto told = calls.disagreement().value_or("");
  CHECK(told.find("rank 0: " + to_string(train(0, 5)) + ";") != std::string::npos);
  CHECK(told.find("rank 1: " + to_string(train(0, 6)) + ";") != std::string::npos);
}
