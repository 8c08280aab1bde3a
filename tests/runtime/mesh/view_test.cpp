#include "troupe/mesh/view.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::mesh;
using enum member_role;

TEST_CASE("the view of a world has all its members, active and in order") {
  auto whole = view_of_world(3, 5);
  CHECK(whole.generation == 5);
  CHECK(whole.members == std::vector<view_member>{{{0}, active}, {{1}, active}, {{2}, active}});
}

TEST_CASE("a view tells its members by role") {
  view present{1, {{{0}, active}, {{2}, spare}, {{5}, leaving}, {{7}, active}}};
  CHECK(present.with_role(active) == std::vector<world_rank>{{0}, {7}});
  CHECK(present.with_role(spare) == std::vector<world_rank>{{2}});
  CHECK(present.staying() == std::vector<world_rank>{{0}, {2}, {7}});
}
