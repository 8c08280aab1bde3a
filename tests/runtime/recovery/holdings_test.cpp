#include "troupe/recovery/holdings.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using enum part_location;

TEST_CASE("a member holds a device if it has the state of all its cells, of that step and in memory") {
  // Stages 0 and 1 on device 0, stage 2 on device 1.
  auto placed = place_cells(make_plan({.num_stages = 3, .num_devices = 2}));
  std::vector<node_inventory> inventories = {
      {0, 0, {{7, 0, 1, own_memory}, {7, 1, 1, own_memory}, {7, 2, 1, disk}}},
      {1, 0, {{7, 2, 1, own_memory}, {7, 0, 1, peer_memory}, {6, 1, 1, peer_memory}}},
      {2, 0, {{7, 2, 1, peer_memory}, {7, 0, 1, own_memory}, {7, 1, 1, peer_memory}}},
      {3, 0, {}}};
  CHECK(holdings_of(inventories, placed, 7) == std::vector<holding>{{{0}, {0}, held_as::own},
                                                                    {{1}, {1}, held_as::own},
                                                                    {{2}, {0}, held_as::copy},
                                                                    {{2}, {1}, held_as::copy}});
  CHECK(holdings_of(inventories, placed, 8).empty());
}
