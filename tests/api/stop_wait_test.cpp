#include "troupe/stop_wait.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {
constexpr stop_limits limits{.answer = 2s, .grace = 20s, .end_alone = 3s};
}

TEST_CASE("a process that was sent a signal alone ends by it when the job does not answer") {
  CHECK(has_waited_enough({1s, false, {}}, limits) == stop_wait_end::none);
  CHECK(has_waited_enough({2s, false, {}}, limits) == stop_wait_end::sent_to_it_alone);
}

TEST_CASE("a job that is to stop has the grace period") {
  CHECK(has_waited_enough({19s, true, {}}, limits) == stop_wait_end::none);
  CHECK(has_waited_enough({20s, true, {}}, limits) == stop_wait_end::grace_over);
}

TEST_CASE("a program that does not end with its job is ended") {
  CHECK(has_waited_enough({5s, true, 2s}, limits) == stop_wait_end::none);
  CHECK(has_waited_enough({5s, true, 3s}, limits) == stop_wait_end::job_ended);
  CHECK(has_waited_enough({2s, false, 0s}, limits) == stop_wait_end::none);
}
