#include "troupe/recovery/holdings.hpp"

#include <catch2/catch_test_macros.hpp>

#include "random_inventories.hpp"

using namespace troupe;
using namespace troupe::recovery;
using enum part_location;

TEST_CASE("a member holds a device if it has the state of all its cells, of that step and in memory") {
  // Stages 0 and 1 on device 0, stage 2 on device 1.
  auto placed = mesh::place_cells(make_plan({.num_stages = 3, .num_devices = 2}));
  std::vector<process_inventory> inventories = {
      {0, 0, {{7, {0}, 1, own_memory}, {7, {1}, 1, own_memory}, {7, {2}, 1, disk}}},
      {1, 0, {{7, {2}, 1, own_memory}, {7, {0}, 1, peer_memory}, {6, {1}, 1, peer_memory}}},
      {2, 0, {{7, {2}, 1, peer_memory}, {7, {0}, 1, own_memory}, {7, {1}, 1, peer_memory}}},
      {3, 0, {}}};
  CHECK(holdings_of(inventories, parts_of(placed, layout::replica_content::own), placed, 7) ==
        std::vector<mesh::holding>{{{0}, {0}, mesh::held_as::own},
                                   {{1}, {1}, mesh::held_as::own},
                                   {{2}, {0}, mesh::held_as::copy},
                                   {{2}, {1}, mesh::held_as::copy}});
  CHECK(holdings_of(inventories, parts_of(placed, layout::replica_content::own), placed, 8).empty());
}

TEST_CASE("a device of which a member has made one part and holds a copy of the other is a copy") {
  auto placed = mesh::place_cells(make_plan({.num_stages = 2, .num_devices = 1}));
  std::vector<process_inventory> inventories = {{1, 0, {{7, {0}, 1, peer_memory}, {7, {1}, 1, own_memory}}},
                                                {2, 0, {{7, {0}, 1, own_memory}, {7, {1}, 1, peer_memory}}}};
  CHECK(holdings_of(inventories, parts_of(placed, layout::replica_content::own), placed, 7) ==
        std::vector<mesh::holding>{{{1}, {0}, mesh::held_as::copy}, {{2}, {0}, mesh::held_as::copy}});
}

TEST_CASE("an equal part of another replica is a copy") {
  auto job = testing::job_on({0, 1}, 2, layout::replica_content::equal);
  std::vector<process_inventory> inventories = {{1, 0, {{7, {{.replica = 1}}, 1, own_memory}}}};
  CHECK(holdings_of(inventories, job.parts, job.placed, 7) ==
        std::vector<mesh::holding>{{{1}, {0}, mesh::held_as::copy}, {{1}, {1}, mesh::held_as::own}});
}

TEST_CASE("devices were where the process says that has seen the newest generation") {
  mesh::hosting home({{0}, {1}}), second({{1}, {1}}), third({{0}, {0}});
  process_inventory fresh{0, 0, {}}, older{1, 0, {}}, newer{2, 0, {}}, other_job{3, 0, {}};
  older.before = {2, second};
  newer.before = {3, third};
  other_job.before = {4, mesh::hosting(std::vector<world_rank>{{0}})};
  CHECK(newest_hosting({}, home) == home);
  CHECK(newest_hosting({fresh, other_job}, home) == home);
  CHECK(newest_hosting({fresh, newer, older, other_job}, home) == third);
}

TEST_CASE("who has the shard of a replica's device holds the device, whoever has the stage's other shards") {
  auto job = testing::job_on({0, 1}, 2);
  job.placed = job.placed.with_shards({0});
  job.parts = parts_of(job.placed, layout::replica_content::own);
  std::vector<process_inventory> inventories = {{4, 0, {{7, {{}, 1}, 1, own_memory}}},
                                                {6, 0, {{7, {{}, 0}, 1, peer_memory}}}};
  CHECK(holdings_of(inventories, job.parts, job.placed, 7) ==
        std::vector<mesh::holding>{{{4}, {1}, mesh::held_as::own}, {{6}, {0}, mesh::held_as::copy}});
}
