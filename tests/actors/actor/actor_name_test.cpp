#include "troupe/actor/actor_name.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::actor;

TEST_CASE("an actor is known by its role, its number and the incarnation of its process") {
  CHECK(to_string(actor_name{actor_role::supervisor, 3, 2}) == "supervisor/3#2");
  CHECK(to_string(actor_name{actor_role::scheduler, 0, 0}) == "scheduler/0#0");
  CHECK(to_string(actor_name{actor_role::device, 12, 1}) == "device/12#1");
  CHECK(to_string(actor_name{actor_role::gatherer, 2, 0}) == "gatherer/2#0");
  CHECK(to_string(actor_name{static_cast<actor_role>(9), 0, 0}) == "unknown/0#0");
}

TEST_CASE("names differ in role, in number and in incarnation") {
  CHECK(actor_name{actor_role::device, 1} != actor_name{actor_role::device, 2});
  CHECK(actor_name{actor_role::scheduler, 0} != actor_name{actor_role::supervisor, 0});
  CHECK(actor_name{actor_role::device, 1, 0} != actor_name{actor_role::device, 1, 1});
}
