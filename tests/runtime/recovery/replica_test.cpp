#include "troupe/recovery/replica.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

using troupe::rank_of_peer_replica;
using troupe::rank_replicated_by;

TEST_CASE("every rank's parts are kept by another rank, and each rank keeps those of one") {
  for (int world_size = 2; world_size <= 9; ++world_size)
    for (int rank = 0; rank < world_size; ++rank) {
      auto keeper = rank_of_peer_replica(rank, world_size);
      REQUIRE(keeper);
      CHECK(*keeper != rank);
      CHECK(rank_replicated_by(*keeper, world_size) == rank);
    }
  CHECK(rank_of_peer_replica(3, 4) == 0);
}

TEST_CASE("a world of one has no rank to keep a copy") {
  CHECK_FALSE(rank_of_peer_replica(0, 1));
  CHECK_FALSE(rank_replicated_by(0, 1));
}

TEST_CASE("a rank outside the world is refused") {
  CHECK_THROWS_AS(rank_of_peer_replica(4, 4), std::invalid_argument);
  CHECK_THROWS_AS(rank_of_peer_replica(-1, 4), std::invalid_argument);
  CHECK_THROWS_AS(rank_replicated_by(0, 0), std::invalid_argument);
}
