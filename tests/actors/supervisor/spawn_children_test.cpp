#include <catch2/catch_test_macros.hpp>

#include "one_node.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("the lowest rank runs a scheduler in each generation, which reaches everyone") {
  one_node here(0);
  here.define();
  here.view(1);
  here.enter(0);
  call_entered other{1, {1, 0, {}}, {0, call_kind::train, 0, 10, 0, 0}, {}, 0};
  here.hear(1, {actor_role::scheduler, 0}, other);
  REQUIRE(here.sent<restore_order>().size() == 1);
  CHECK(here.out.frames[0].to_rank == 1);
  here.hear(1, {actor_role::scheduler, 0}, node_restored{1, 1, {}});
  REQUIRE(here.sent<grant>().size() == 1);  // for the other node's device
  CHECK(here.sent<grant>()[0].end_step > 0);
  CHECK(here.members.phases.size() == 3);

  here.fence(2);
  here.view(2);
  here.hear(1, {actor_role::scheduler, 0}, other);  // late
  CHECK(here.sent<restore_order>().size() == 1);
  other.generation = 2;
  here.hear(2, {actor_role::scheduler, 0}, other);
  REQUIRE(here.sent<restore_order>().size() == 2);
  CHECK(here.sent<restore_order>()[1].generation == 2);
}

TEST_CASE("a job that is defined after the view reaches the scheduler too") {
  one_node here(0);
  here.view(1);
  here.define();
  here.enter(0);
  here.hear(1, {actor_role::scheduler, 0},
            call_entered{1, {1, 0, {}}, {0, call_kind::train, 0, 10, 0, 0}, {}, 0});
  CHECK(here.sent<restore_order>().size() == 1);
}
