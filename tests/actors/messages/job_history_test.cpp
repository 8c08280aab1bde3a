#include "troupe/messages/job_history.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::messages;

namespace {

past_recovery recovery(std::uint64_t generation) {
  past_recovery made;
  made.report.generation = generation;
  made.at_ms = static_cast<std::int64_t>(1000 * generation);
  return made;
}

}  // namespace

TEST_CASE("a recovery that several processes tell of counts once") {
  job_history history;
  CHECK(history.add(recovery(3)));
  CHECK(history.add(recovery(2)));
  CHECK_FALSE(history.add(recovery(3)));
  CHECK(history.num_recoveries == 2);
  CHECK(history.recoveries[0].report.generation == 2);
}

TEST_CASE("a young process learns from an older one what was before it") {
  job_history old, young;
  old.started_ms = 100;
  young.started_ms = 900;
  for (std::uint64_t i = 2; i < 6; ++i) old.add(recovery(i));
  young.add(recovery(5));
  young.add(recovery(6));
  CHECK(old.is_ahead_of(young));
  young.learn(old);
  CHECK(young.num_recoveries == 5);
  CHECK(young.recoveries.front().report.generation == 2);
  CHECK(young.recoveries.back().report.generation == 6);
  CHECK(young.started_ms == 100);
  CHECK(young.is_ahead_of(old));
  old.learn(young);
  CHECK_FALSE(young.is_ahead_of(old));
  CHECK_FALSE(old.is_ahead_of(young));
}

TEST_CASE("a history keeps the newest recoveries and counts all") {
  job_history old, young;
  for (std::uint64_t i = 1; i <= job_history::max_kept + 5; ++i) old.add(recovery(i));
  CHECK(old.recoveries.size() == job_history::max_kept);
  CHECK(old.recoveries.front().report.generation == 6);
  young.learn(old);
  CHECK(young.num_recoveries == job_history::max_kept + 5);
  CHECK_FALSE(old.add(recovery(2)));
  CHECK(old.summary().recoveries.empty());
  CHECK_FALSE(old.is_ahead_of(old.summary()));
}
