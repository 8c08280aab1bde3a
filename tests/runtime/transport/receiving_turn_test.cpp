#include "troupe/transport/receiving_turn.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/transport/transport.hpp"

using troupe::receiving_turn;

namespace {

struct nobody final : troupe::tensor_waiter {
  bool take(int, const troupe::tensor_tag&, troupe::tensor&) override { return false; }
  bool waits() const override { return false; }
};

}  // namespace

TEST_CASE("a turn is one waiter's until it gives it back") {
  receiving_turn turn;
  nobody first, second;
  CHECK_FALSE(turn.is_attended());
  CHECK(turn.take(first));
  CHECK(turn.take(first));
  CHECK_FALSE(turn.take(second));
  CHECK(turn.is_of(first));
  CHECK(turn.is_attended());
  turn.give_back();
  CHECK_FALSE(turn.is_attended());
  CHECK(turn.take(second));
}

TEST_CASE("the transport's thread watches turns, or is woken by who takes the next") {
  receiving_turn turn;
  nobody waiter;
  CHECK_FALSE(turn.must_wake_watcher());  // it has not slept yet
  CHECK_FALSE(turn.is_to_be_watched());
  turn.take(waiter);
  CHECK(turn.must_wake_watcher());
  CHECK_FALSE(turn.must_wake_watcher());
  CHECK(turn.is_to_be_watched());
  CHECK_FALSE(turn.must_wake_watcher());
  turn.give_back();
  CHECK(turn.is_to_be_watched());  // another turn may follow soon
  turn.take(waiter);
  turn.give_back();
  CHECK_FALSE(turn.must_wake_watcher());
  CHECK(turn.is_to_be_watched());
  CHECK_FALSE(turn.is_to_be_watched());
}
