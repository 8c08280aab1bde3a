#include "troupe/collective/engine/backoff.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::collective;
using namespace std::chrono_literals;

namespace {

using action = backoff::action;

/// How often it spins in a wait before it does something else, which is put into `then`.
int spins(backoff& waiting, action& then) {
  waiting.begin();
  int count = 0;
  while ((then = waiting.next()) == action::spin) ++count;
  return count;
}
int spins(backoff& waiting) {
  action ignored{};
  return spins(waiting, ignored);
}

}  // namespace

TEST_CASE("a wait spins, then yields, then sleeps") {
  backoff waiting;
  action then{};
  CHECK(spins(waiting, then) > 100);
  CHECK(then == action::yield);
  waiting.add_yield(150us);
  CHECK(waiting.next() == action::yield);
  waiting.add_yield(150us);
  CHECK(waiting.next() == action::sleep);
  CHECK(waiting.next() == action::sleep);
  CHECK(spins(waiting) > 100);
}

TEST_CASE("waits that spinning does not end spin less each time, and those that it ends a little longer") {
  backoff waiting;
  auto before = spins(waiting);
  for (int i = 0; i < 20; ++i) {
    spins(waiting);
    waiting.made_progress();
  }
  auto least = spins(waiting);
  CHECK(least < 3);
  CHECK(least < before);
  waiting.begin();
  CHECK(waiting.next() == action::spin);
  waiting.made_progress();
  CHECK(spins(waiting) == least + 1);
}
