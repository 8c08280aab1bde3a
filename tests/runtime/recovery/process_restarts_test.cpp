#include "troupe/recovery/process_restarts.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::recovery;
using namespace std::chrono_literals;

namespace {
const process_restarts::time_point start{};
}

TEST_CASE("the number of allowed restarts recovers with time") {
  process_restarts restarts({.max_restarts = 2, .window = 1h});
  CHECK_FALSE(restarts.refusal({0, "killed by SIGKILL", 1}, start));
  CHECK_FALSE(restarts.refusal({1, "killed by SIGKILL", 2}, start + 30min));
  CHECK(restarts.refusal({2, "killed by SIGKILL", 3}, start + 59min));
  CHECK_FALSE(restarts.refusal({2, "killed by SIGKILL", 3}, start + 61min));
}

TEST_CASE("the same failure of the same rank without a step in between is retried twice") {
  process_restarts restarts({});
  for (int i = 0; i < 2; ++i) CHECK_FALSE(restarts.refusal({1, "exit code 1: no file", 7}, start + i * 1s));
  CHECK(restarts.refusal({1, "exit code 1: no file", 7}, start + 2s));
}

TEST_CASE("another rank, another cause or a step done in between is another failure, and so is a drill") {
  process_restarts restarts({.max_restarts = 100});
  for (std::uint64_t i = 0; i < 4; ++i) {
    CHECK_FALSE(restarts.refusal({1, "exit code 1", i}, start));
    CHECK_FALSE(restarts.refusal({2, "exit code " + std::to_string(i), 7}, start));
    CHECK_FALSE(restarts.refusal({3, "killed by SIGKILL", 7, true}, start));
  }
  for (int rank = 10; rank < 20; ++rank) CHECK_FALSE(restarts.refusal({rank, "exit code 1", 7}, start));
}

TEST_CASE("failures with and without a text are the same, unless the exit codes differ") {
  process_restarts restarts({});
  CHECK_FALSE(restarts.refusal({1, "exit code 1: no file", 7}, start));
  CHECK_FALSE(restarts.refusal({1, "exit code 1", 7}, start));
  CHECK(restarts.refusal({1, "exit code 1: no file", 7}, start));
  for (const auto* cause : {"exit code 1", "exit code 12: no file", "exit code 1", "exit code 12"})
    CHECK_FALSE(restarts.refusal({2, cause, 7}, start));
}

TEST_CASE("the same failure long ago is forgotten") {
  process_restarts restarts({.window = 1h});
  for (int i = 0; i < 6; ++i) CHECK_FALSE(restarts.refusal({1, "killed by SIGKILL", 0}, start + i * 2h));
}

TEST_CASE("kills from outside are the same only if the job did nothing between them, not even again") {
  process_restarts restarts({});
  auto killed = [](std::uint64_t num_advances) {
    return process_failure{1, "killed by SIGKILL", 7, false, true, num_advances};
  };
  for (std::uint64_t i = 0; i < 6; ++i) CHECK_FALSE(restarts.refusal(killed(i), start));
  CHECK_FALSE(restarts.refusal(killed(5), start));
  CHECK(restarts.refusal(killed(5), start));
}

TEST_CASE("a failure of the program itself is the same although steps were computed again") {
  process_restarts restarts({});
  for (std::uint64_t i = 0; i < 2; ++i)
    CHECK_FALSE(restarts.refusal({1, "exit code 1: no file", 7, false, false, i}, start));
  CHECK(restarts.refusal({1, "exit code 1: no file", 7, false, false, 2}, start));
}
