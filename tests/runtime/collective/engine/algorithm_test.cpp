#include "troupe/collective/engine/algorithm.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::collective;

namespace {

struct steps {
  int allowed = 0;
  std::vector<std::string> done;
};

algorithm two_waits(steps& of) {
  of.done.emplace_back("begun");
  co_await until([&] { return of.allowed >= 1; });
  of.done.emplace_back("first");
  co_await until([&] { return of.allowed >= 2; });
  of.done.emplace_back("second");
}

algorithm outer(steps& of) {
  auto part = two_waits(of);
  co_await finished(part);
  of.done.emplace_back("outer");
}

algorithm failing(bool in_predicate) {
  if (!in_predicate) throw std::runtime_error("in the text");
  co_await until([]() -> bool { throw std::runtime_error("in the predicate"); });
}

algorithm holding(std::shared_ptr<int> kept, bool& go) {
  co_await until([&] { return go; });
  *kept = 1;
}

}  // namespace

TEST_CASE("an algorithm starts at its first advance and resumes where it waits") {
  steps seen;
  auto running = two_waits(seen);
  CHECK(seen.done.empty());
  CHECK_FALSE(running.advance());
  CHECK_FALSE(running.advance());
  CHECK(seen.done == std::vector<std::string>{"begun"});
  seen.allowed = 1;
  CHECK_FALSE(running.advance());
  CHECK(seen.done.size() == 2);
  seen.allowed = 2;
  CHECK(running.advance());
  CHECK(running.advance());
  CHECK(seen.done == std::vector<std::string>{"begun", "first", "second"});
}

TEST_CASE("an algorithm without a wait ends at its first advance") {
  steps seen{2, {}};
  auto running = two_waits(seen);
  CHECK(running.advance());
}

TEST_CASE("an algorithm waits for another as part of it") {
  steps seen;
  auto running = outer(seen);
  CHECK_FALSE(running.advance());
  seen.allowed = 2;
  CHECK(running.advance());
  CHECK(seen.done.back() == "outer");
}

TEST_CASE("an exception of an algorithm, or of one that it waits for, is thrown by advance") {
  for (bool in_predicate : {false, true}) {
    auto running = failing(in_predicate);
    CHECK_THROWS_AS(running.advance(), std::runtime_error);
  }
}

TEST_CASE("an algorithm destroyed while it waits releases its resources") {
  auto kept = std::make_shared<int>(0);
  bool go = false;
  {
    auto running = holding(kept, go);
    CHECK_FALSE(running.advance());
    auto moved = std::move(running);
    CHECK_FALSE(moved.advance());
    CHECK(kept.use_count() == 2);
  }
  CHECK(kept.use_count() == 1);
  CHECK(*kept == 0);
}
