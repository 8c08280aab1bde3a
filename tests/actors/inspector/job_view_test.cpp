#include "troupe/inspector/job_view.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

recent_step step(std::uint64_t number, double step_s = 0.5) {
  recent_step made;
  made.step = number;
  made.step_s = step_s;
  return made;
}

}  // namespace

TEST_CASE("a history keeps the newest steps, ascending, and what a recovery computes again once") {
  metrics_history history;
  for (std::uint64_t i = 1; i <= metrics_history::max_kept + 5; ++i) history.add(step(i));
  auto all = history.after(0, 20'000);
  CHECK(all.steps.size() == metrics_history::max_kept);
  CHECK(all.oldest == 6);
  history.add(step(metrics_history::max_kept, 9));
  auto end = history.after(metrics_history::max_kept - 2, 100);
  REQUIRE(end.steps.size() == 2);
  CHECK(end.steps.back().step_s == 9);
  CHECK(history.newest()->step == metrics_history::max_kept);
}

TEST_CASE("the rate is that of the newest steps") {
  metrics_history history;
  CHECK(history.rate(10) == 0);
  history.add(step(1, 100));
  CHECK(history.rate(10) == 0);
  history.add(step(2));
  history.add(step(3));
  CHECK(history.rate(10) == 2);
  CHECK(history.rate(2) == 2);
}

TEST_CASE("a scheduler's history says how many steps it has dropped") {
  step_history history;
  CHECK(history.after(0).newest == 0);
  for (std::uint64_t i = 1; i <= step_history::max_kept + 10; ++i) history.add(step(i));
  auto found = history.after(5);
  CHECK(found.missed == 5);
  CHECK(found.steps.size() == step_history::max_kept);
  CHECK(found.steps.front().step == 11);
  CHECK(history.after(found.newest).steps.empty());
  CHECK(history.after(found.newest + 7).steps.empty());
}
