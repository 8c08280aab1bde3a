#include "troupe/gradients/communication_order.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::gradients;

namespace {

std::vector<int> order_of(std::vector<timed_chunk> chunks) { return communication_order(chunks); }

}  // namespace

TEST_CASE("over a fast link chunks are sent in the order in which they are ready") {
  CHECK(order_of({{.ready = 0, .takes = 1, .needed = 2},
                  {.ready = 2, .takes = 1, .needed = 1},
                  {.ready = 4, .takes = 1, .needed = 0}}) == std::vector{0, 1, 2});
  CHECK(order_of({{.ready = 4, .takes = 1}, {.ready = 2, .takes = 1}}) == std::vector{1, 0});
  CHECK(order_of({}).empty());
}

TEST_CASE("over a slow link urgent chunks overtake waiting ones, but not those in flight") {
  CHECK(order_of({{.ready = 0, .takes = 3, .needed = 1},
                  {.ready = 0, .takes = 3, .needed = 1},
                  {.ready = 0, .takes = 3, .needed = 1},
                  {.ready = 4, .takes = 3, .needed = 0}}) == std::vector{0, 1, 3, 2});
}
