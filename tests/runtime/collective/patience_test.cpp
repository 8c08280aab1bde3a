#include "troupe/collective/patience.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using step = patience::step;

/// How often it spins in a wait before it does something else, which is put into `then`.
int spins(patience& waiting, step& then) {
  waiting.begin();
  int count = 0;
  while ((then = waiting.next()) == step::spin) ++count;
  return count;
}
int spins(patience& waiting) {
  step ignored{};
  return spins(waiting, ignored);
}

}  // namespace

TEST_CASE("a wait spins, then yields, then sleeps") {
  patience waiting;
  step then{};
  CHECK(spins(waiting, then) > 100);
  CHECK(then == step::yield);
  waiting.yielded(150us);
  CHECK(waiting.next() == step::yield);
  waiting.yielded(150us);
  CHECK(waiting.next() == step::sleep);
  CHECK(waiting.next() == step::sleep);
  CHECK(spins(waiting) > 100);
}

TEST_CASE("waits that spinning does not end spin less and less, and those that it ends a little more") {
  patience waiting;
  auto before = spins(waiting);
  for (int i = 0; i < 20; ++i) {
    spins(waiting);
    waiting.moved();
  }
  auto least = spins(waiting);
  CHECK(least < 3);
  CHECK(least < before);
  waiting.begin();
  CHECK(waiting.next() == step::spin);
  waiting.moved();
  CHECK(spins(waiting) == least + 1);
}
