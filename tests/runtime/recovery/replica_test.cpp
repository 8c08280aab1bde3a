#include "troupe/recovery/replica.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

using namespace troupe;
using enum member_role;

TEST_CASE("every member's parts are kept by another member, and each member keeps those of one") {
  for (int world_size = 2; world_size <= 9; ++world_size)
    for (int rank = 0; rank < world_size; ++rank) {
      auto present = view_of_world(world_size);
      auto keeper = keeper_of(present, {rank});
      REQUIRE(keeper);
      CHECK(keeper->rank == (rank + 1) % world_size);
      CHECK(kept_by(present, *keeper) == std::vector<member_id>{{rank}});
    }
}

TEST_CASE("a member alone has nobody to keep a copy") {
  CHECK_FALSE(keeper_of(view_of_world(1), {0}));
  CHECK(kept_by(view_of_world(1), {0}).empty());
  view with_one_that_leaves{1, {{{3}, active}, {{4}, leaving}}};
  CHECK_FALSE(keeper_of(with_one_that_leaves, {3}));
  CHECK(keeper_of(with_one_that_leaves, {4}) == member_id{3});
}

TEST_CASE("the ring goes over the members that stay, whatever their ranks") {
  view present{1, {{{1}, active}, {{2}, leaving}, {{5}, spare}, {{8}, active}}};
  CHECK(keeper_of(present, {1}) == member_id{5});
  CHECK(keeper_of(present, {2}) == member_id{5});
  CHECK(keeper_of(present, {5}) == member_id{8});
  CHECK(keeper_of(present, {8}) == member_id{1});
  CHECK(kept_by(present, {5}) == std::vector<member_id>{{1}, {2}});
  CHECK(kept_by(present, {2}).empty());
}

TEST_CASE("a member outside the view is refused") {
  CHECK_THROWS_AS(keeper_of(view_of_world(4), {4}), std::invalid_argument);
  CHECK_THROWS_AS(keeper_of(view{}, {0}), std::invalid_argument);
}
