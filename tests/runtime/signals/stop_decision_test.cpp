#include "troupe/signals/stop_decision.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::signals;
using namespace std::chrono_literals;

namespace {
constexpr stop_limits limits{.answer = 2s, .grace = 20s, .end_alone = 3s};
}

TEST_CASE("a process that alone received a signal ends by it unless the job confirms a stop") {
  CHECK(decide_stop({1s, false, {}}, limits) == stop_decision::keep_waiting);
  CHECK(decide_stop({2s, false, {}}, limits) == stop_decision::only_this_process);
}

TEST_CASE("a job that stops gets the grace period") {
  CHECK(decide_stop({19s, true, {}}, limits) == stop_decision::keep_waiting);
  CHECK(decide_stop({20s, true, {}}, limits) == stop_decision::grace_over);
}

TEST_CASE("a program that does not exit after its job is ended") {
  CHECK(decide_stop({5s, true, 2s}, limits) == stop_decision::keep_waiting);
  CHECK(decide_stop({5s, true, 3s}, limits) == stop_decision::job_ended);
  CHECK(decide_stop({2s, false, 0s}, limits) == stop_decision::keep_waiting);
}
