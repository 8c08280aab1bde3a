#pragma once
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "troupe/recovery/restore_plan.hpp"

namespace troupe::testing {

/// choose_restore for stages with a device each, which is on the rank given.
inline restore_plan choose_restore_on(const std::vector<node_inventory>& inventories,
                                      const std::vector<int>& rank_of_stage) {
  auto num_stages = static_cast<int>(rank_of_stage.size());
  std::vector<member_id> members;
  for (auto rank : rank_of_stage) members.push_back({rank});
  return choose_restore(inventories,
                        place_cells(make_plan({.num_stages = num_stages, .num_devices = num_stages})),
                        hosting(members));
}

/// What a few nodes hold of a few steps of a few stages, and where the stages run. Same seed, same case.
struct random_case {
  std::vector<node_inventory> inventories;
  std::vector<int> rank_of_stage;
};

inline std::set<std::tuple<std::uint64_t, std::uint32_t, part_location>> random_holdings(
    std::mt19937_64& random, std::uint32_t num_stages) {
  std::set<std::tuple<std::uint64_t, std::uint32_t, part_location>> holdings;
  auto density = random() % 12 + 1;
  for (std::uint64_t step = 0; step < 5; ++step)
    for (std::uint32_t stage = 0; stage < num_stages + 1; ++stage)  // one stage that the job does not have
      for (auto location : {part_location::own_memory, part_location::peer_memory, part_location::disk})
        if (random() % 12 < density) holdings.insert({step * 10, stage, location});
  return holdings;
}

inline random_case make_random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  random_case made;
  auto num_nodes = static_cast<int>(random() % 4 + 1);
  auto num_stages = static_cast<std::uint32_t>(random() % 4 + 1);
  for (std::uint32_t stage = 0; stage < num_stages; ++stage)
    made.rank_of_stage.push_back(static_cast<int>(random() % static_cast<std::uint64_t>(num_nodes)));
  for (int rank = 0; rank < num_nodes; ++rank) {
    node_inventory node{rank, static_cast<double>(random() % 50), {}};
    for (auto [step, stage, location] : random_holdings(random, num_stages))
      node.parts.push_back({step, stage, random() % 3, location});
    made.inventories.push_back(node);
  }
  return made;
}

}  // namespace troupe::testing
