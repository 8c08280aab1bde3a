#include "troupe/recovery/replica.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <set>
#include <stdexcept>

#include "random_inventories.hpp"
#include "troupe/recovery/retention.hpp"

using namespace troupe;
using namespace troupe::recovery;
using enum mesh::member_role;

TEST_CASE("every member's parts are kept by another member, and each member keeps those of one") {
  for (int world_size = 2; world_size <= 9; ++world_size)
    for (int rank = 0; rank < world_size; ++rank) {
      auto present = mesh::view_of_world(world_size);
      auto keeper = keeper_of(present, {rank});
      REQUIRE(keeper);
      CHECK(*keeper == (rank + 1) % world_size);
      CHECK(kept_by(present, *keeper) == std::vector<world_rank>{{rank}});
    }
}

TEST_CASE("a member alone has nobody to keep a copy") {
  CHECK_FALSE(keeper_of(mesh::view_of_world(1), {0}));
  CHECK(kept_by(mesh::view_of_world(1), {0}).empty());
  mesh::view with_one_that_leaves{1, {{{3}, active}, {{4}, leaving}}};
  CHECK_FALSE(keeper_of(with_one_that_leaves, {3}));
  CHECK(keeper_of(with_one_that_leaves, {4}) == world_rank{3});
}

TEST_CASE("the ring goes over the members that stay, whatever their ranks") {
  mesh::view present{1, {{{1}, active}, {{2}, leaving}, {{5}, spare}, {{8}, active}}};
  CHECK(keeper_of(present, {1}) == world_rank{5});
  CHECK(keeper_of(present, {2}) == world_rank{5});
  CHECK(keeper_of(present, {5}) == world_rank{8});
  CHECK(keeper_of(present, {8}) == world_rank{1});
  CHECK(kept_by(present, {5}) == std::vector<world_rank>{{1}, {2}});
  CHECK(kept_by(present, {2}).empty());
}

TEST_CASE("a member outside the view is refused") {
  CHECK_THROWS_AS(keeper_of(mesh::view_of_world(4), {4}), std::invalid_argument);
  CHECK_THROWS_AS(keeper_of(mesh::view{}, {0}), std::invalid_argument);
}

namespace {

std::optional<world_rank> keeper_in(const testing::placed_job& job, const layout::cell& of,
                                    const mesh::view& present) {
  for (const auto& part : job.parts)
    if (part.id.cell == of) return copy_keeper(part, job.parts, job.placed, job.hosts, present);
  return {};
}

}  // namespace

TEST_CASE("no copy of a part is sent where an equal one lives on another member") {
  auto job = testing::job_on({0, 1, 2, 3}, 2, layout::replica_content::equal);
  for (const auto& part : job.parts) CHECK_FALSE(keeper_in(job, part.id.cell, mesh::view_of_world(4)));
  job = testing::job_on({0, 1, 2, 3}, 2, layout::replica_content::own);
  CHECK(keeper_in(job, {.stage = 0, .replica = 1}, mesh::view_of_world(4)) == world_rank{3});
}

TEST_CASE("of equal parts on one member one copy is sent, and none if a third lives elsewhere") {
  auto job = testing::job_on({0, 0}, 2, layout::replica_content::equal);
  CHECK(keeper_in(job, {.replica = 0}, mesh::view_of_world(2)) == world_rank{1});
  CHECK_FALSE(keeper_in(job, {.replica = 1}, mesh::view_of_world(2)));
  job = testing::job_on({0, 0, 1}, 3, layout::replica_content::equal);
  for (int replica : {0, 1, 2}) CHECK_FALSE(keeper_in(job, {.replica = replica}, mesh::view_of_world(2)));
}

TEST_CASE("a part on a member that leaves is no second copy") {
  auto job = testing::job_on({0, 1}, 2, layout::replica_content::equal);
  mesh::view present{1, {{{0}, active}, {{1}, leaving}, {{2}, active}}};
  CHECK(keeper_in(job, {.replica = 0}, present) == world_rank{2});
  CHECK_FALSE(keeper_in(job, {.replica = 1}, present));
}

TEST_CASE("the copies that are sent make each step of drawn jobs safe, and none could be left out") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    auto job = testing::make_random_case(seed).job;
    std::map<int, layout::replica_content> of_stage;  // alike in all replicas
    for (auto& part : job.parts)
      part.content = of_stage.emplace(part.id.cell.stage, part.content).first->second;
    auto present = mesh::view_of_world(4);
    std::map<int, process_inventory> processes;
    for (const auto& member : present.members) processes[member.rank].rank = member.rank;
    std::vector<std::pair<int, held_part>> sent;
    for (const auto& part : job.parts) {
      auto host = host_of(job.placed, job.hosts, part.id.cell);
      processes[host].parts.push_back({1, part.id, 1, part_location::own_memory});
      auto keeper = copy_keeper(part, job.parts, job.placed, job.hosts, present);
      if (keeper) sent.emplace_back(*keeper, held_part{1, part.id, 1, part_location::peer_memory});
    }
    auto committed_with = [&](std::size_t left_out) {
      auto all = processes;
      for (std::size_t at = 0; at < sent.size(); ++at)
        if (at != left_out) all[sent[at].first].parts.push_back(sent[at].second);
      std::vector<process_inventory> inventories;
      for (const auto& [rank, process] : all) inventories.push_back(process);
      return newest_committed_step(inventories, job.parts);
    };
    INFO("seed " << seed);
    CHECK(committed_with(sent.size()) == 1);
    for (std::size_t at = 0; at < sent.size(); ++at) CHECK(committed_with(at) == 0);
  }
}

TEST_CASE("the copy of a shard is kept by the member after its owner's") {
  auto job = testing::job_on({0, 2}, 2);
  job.placed = job.placed.with_shards({0});
  job.parts = parts_of(job.placed, layout::replica_content::own);
  auto present = mesh::view_of_world(3);
  REQUIRE(job.parts.size() == 2);
  CHECK(copy_keeper(job.parts[0], job.parts, job.placed, job.hosts, present) == world_rank{1});
  CHECK(copy_keeper(job.parts[1], job.parts, job.placed, job.hosts, present) == world_rank{0});
}
