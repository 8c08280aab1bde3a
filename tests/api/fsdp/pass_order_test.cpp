#include "troupe/fsdp/detail/pass_order.hpp"

#include <catch2/catch_test_macros.hpp>

using troupe::detail::pass_order;
using units = std::vector<std::size_t>;

TEST_CASE("a first pass is expected to go as guessed, and later ones as the last") {
  pass_order order({0, 1, 2, 3});
  order.begin();
  order.note(0);
  CHECK(order.next(1) == units{1});
  CHECK(order.next(9) == units{1, 2, 3});
  order.note(2);  // one is left out
  CHECK(order.next(2) == units{3});
  order.note(0);  // back to the first: not expected again
  CHECK(order.next(2).empty());
  order.note(3);
  CHECK(order.next(2).empty());
  order.end();
  order.begin();
  order.note(0);
  CHECK(order.next(9) == units{2, 0, 3});
  order.note(2);
  order.note(0);
  CHECK(order.next(9) == units{3});
  CHECK(order.first(2) == units{0, 2});
  CHECK(order.first(9) == units{0, 2, 0, 3});
}

TEST_CASE("a pass that uses nothing changes nothing") {
  pass_order order({1, 0});
  order.begin();
  order.end();
  order.begin();
  CHECK(order.next(1).empty());  // before the first use nothing is known
  order.note(1);
  CHECK(order.next(1) == units{0});
}
