#pragma once
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "troupe/recovery/restore_plan.hpp"

namespace troupe::testing {

/// A job with a device for each stage of each replica, and the member that hosts it.
struct placed_job {
  mesh::placement placed;
  std::vector<layout::job_part> parts;
  mesh::hosting hosts;
};

/// `rank_of`: of the stages of replica 0, then of those of replica 1, ...
inline placed_job job_on(const std::vector<int>& rank_of, int num_replicas = 1,
                         layout::replica_content content = layout::replica_content::own) {
  std::vector<mesh::logical_device> devices;
  std::map<layout::cell, mesh::device_id> device_of_cell;
  std::vector<world_rank> members;
  auto num_stages = static_cast<int>(rank_of.size()) / num_replicas;
  for (auto rank : rank_of) {
    auto number = static_cast<int>(devices.size());
    devices.push_back({.id = {number}});
    device_of_cell[{.stage = number % num_stages, .replica = number / num_stages}] = {number};
    members.push_back({rank});
  }
  mesh::placement placed(std::move(devices), std::move(device_of_cell));
  auto parts = parts_of(placed, content);
  return {std::move(placed), std::move(parts), mesh::hosting(members)};
}

inline recovery::restore_plan choose_restore_of(const std::vector<recovery::process_inventory>& inventories,
                                                const placed_job& job) {
  return choose_restore(inventories, job.parts, job.placed, job.hosts);
}

/// For one replica.
inline recovery::restore_plan choose_restore_on(const std::vector<recovery::process_inventory>& inventories,
                                                const std::vector<int>& rank_of_stage) {
  return choose_restore_of(inventories, job_on(rank_of_stage));
}

/// What a few processes hold of a few steps of a few parts, and where these are. Same seed, same case.
struct random_case {
  std::vector<recovery::process_inventory> inventories;
  placed_job job;
};

using drawn_holdings = std::set<std::tuple<std::uint64_t, layout::part_id, recovery::part_location>>;

inline drawn_holdings random_holdings(std::mt19937_64& random, int num_stages, int num_replicas) {
  drawn_holdings holdings;
  auto density = random() % 12 + 1;
  for (std::uint64_t step = 0; step < 5; ++step)
    for (int stage = 0; stage < num_stages + 1; ++stage)  // one stage that the job does not have
      for (int replica = 0; replica < num_replicas; ++replica)
        for (auto location : {recovery::part_location::own_memory, recovery::part_location::peer_memory,
                              recovery::part_location::disk})
          if (random() % 12 < density)
            holdings.insert({step * 10, {{.stage = stage, .replica = replica}}, location});
  return holdings;
}

inline random_case make_random_case(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto num_nodes = static_cast<int>(random() % 4 + 1);
  auto num_stages = static_cast<int>(random() % 4 + 1), num_replicas = static_cast<int>(random() % 3 + 1);
  std::vector<int> rank_of;
  for (int device = 0; device < num_stages * num_replicas; ++device)
    rank_of.push_back(static_cast<int>(random() % static_cast<std::uint64_t>(num_nodes)));
  auto content = random() % 2 == 0 ? layout::replica_content::own : layout::replica_content::equal;
  random_case made{{}, job_on(rank_of, num_replicas, content)};
  for (auto& part : made.job.parts)
    if (random() % 8 == 0) part.content = layout::replica_content::own;
  for (int rank = 0; rank < num_nodes; ++rank) {
    recovery::process_inventory process{rank, static_cast<double>(random() % 50), {}};
    for (const auto& [step, part, location] : random_holdings(random, num_stages, num_replicas))
      process.parts.push_back({step, part, random() % 3, location});
    made.inventories.push_back(process);
  }
  return made;
}

}  // namespace troupe::testing
