#include "troupe/actor/actor_name.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("an actor is known by its role, devices by their number too") {
  CHECK(to_string(actor_name{actor_role::supervisor, 0}) == "supervisor");
  CHECK(to_string(actor_name{actor_role::scheduler, 0}) == "scheduler");
  CHECK(to_string(actor_name{actor_role::device, 12}) == "device/12");
  CHECK(to_string(actor_name{static_cast<actor_role>(9), 0}) == "unknown");
}

TEST_CASE("names differ in role and in number") {
  CHECK(actor_name{actor_role::device, 1} != actor_name{actor_role::device, 2});
  CHECK(actor_name{actor_role::scheduler, 0} != actor_name{actor_role::supervisor, 0});
}
