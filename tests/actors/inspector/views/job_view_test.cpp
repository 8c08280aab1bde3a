#include "troupe/inspector/views/job_view.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::inspector;

namespace {

actors::messages::recent_step step(std::uint64_t number, double step_s = 0.5) {
  actors::messages::recent_step made;
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

TEST_CASE("the rate of a job that does nothing any more is 0, and not that of its last steps") {
  metrics_history history;
  CHECK(history.rate_at(0) == 0);
  auto add = [&, number = std::uint64_t{0}](std::int64_t at_ms, double step_s) mutable {
    auto made = step(++number, step_s);
    made.at_ms = at_ms;
    history.add(made);
  };
  for (int i = 0; i < 30; ++i) add(1000 + 100 * i, 0.1);
  CHECK(history.rate_at(4500) > 9);
  CHECK(history.rate_at(3900 + 20'000) == 0);
  // A step that a pause has lengthened says nothing of the others.
  add(64'000, 60);
  for (int i = 1; i < 10; ++i) add(64'000 + 100 * i, 0.1);
  CHECK(history.rate_at(65'000) > 0);
  CHECK(history.rate_at(69'000) == 0);
  // Of slow steps one is waited for.
  for (int i = 1; i < 25; ++i) add(70'000 + 10'000 * i, 10);
  CHECK(history.rate_at(310'000 + 30'000) > 0);
  CHECK(history.rate_at(310'000 + 41'000) == 0);
}

TEST_CASE("a scheduler's history says how many steps it has dropped") {
  actors::messages::step_history history;
  CHECK(history.after(0).newest == 0);
  for (std::uint64_t i = 1; i <= actors::messages::step_history::max_kept + 10; ++i) history.add(step(i));
  auto found = history.after(5);
  CHECK(found.missed == 5);
  CHECK(found.steps.size() == actors::messages::step_history::max_kept);
  CHECK(found.steps.front().step == 11);
  CHECK(history.after(found.newest).steps.empty());
  CHECK(history.after(found.newest + 7).steps.empty());
}
