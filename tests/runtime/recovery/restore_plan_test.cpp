#include "troupe/recovery/restore_plan.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <random>

#include "random_inventories.hpp"
#include "troupe/wire/codec.hpp"

using namespace troupe;
using namespace troupe::recovery;
using enum part_location;

namespace {

/// Tries the rules of choose_restore one after the other for one part, by looking at everything each time.
std::optional<restore_source> best_source(const testing::random_case& made, std::uint64_t step,
                                          const layout::job_part& wanted) {
  auto host = host_of(made.job.placed, made.job.hosts, wanted.id.cell);
  auto first = [&](part_location location, bool here, bool itself) -> std::optional<restore_source> {
    for (const auto& process : made.inventories) {  // in rank order
      if ((process.rank == host) != here) continue;
      std::optional<layout::part_id> found;
      for (const auto& part : process.parts) {
        bool stands =
            wanted.content == layout::replica_content::equal && part.part.cell.stage == wanted.id.cell.stage;
        if (part.step == step && part.location == location && (part.part == wanted.id) == itself &&
            (itself || stands) && (!found || part.part < *found))
          found = part.part;
      }
      if (found) return restore_source{wanted.id, process.rank, location, *found};
    }
    return {};
  };
  for (bool here : {true, false})
    for (bool itself : {true, false})
      for (auto location : {own_memory, peer_memory})
        if (auto source = first(location, here, itself)) return source;
  for (bool here : {true, false})
    for (bool itself : {true, false})
      if (auto source = first(disk, here, itself)) return source;
  return {};
}

/// Walks all steps down and asks best_source of every part.
restore_plan oracle(const testing::random_case& made) {
  for (std::uint64_t step = 100; step > 0; --step) {
    restore_plan plan{step, false, {}};
    for (const auto& part : made.job.parts)
      if (auto source = best_source(made, step, part)) plan.sources.push_back(*source);
    if (plan.sources.size() == made.job.parts.size()) return plan;
  }
  return {};
}

}  // namespace

TEST_CASE("without any copies the job starts from scratch") {
  CHECK(testing::choose_restore_on({}, {0, 1}) == restore_plan{0, true, {}});
  CHECK(testing::choose_restore_on({{0, 3, {{3, {0}, 1, own_memory}}}, {1, 3, {}}}, {0, 1}).from_scratch);
}

TEST_CASE("the initial weights are computed again rather than sent") {
  CHECK(testing::choose_restore_on({{0, 0, {{0, {0}, 1, own_memory}}}}, {0}) == restore_plan{0, true, {}});
}

TEST_CASE("a lost stage comes from its keeper, the others from their own memory") {
  // Four stages on four ranks, each kept by its right neighbour; rank 2 was killed and respawned empty.
  std::vector<process_inventory> inventories;
  for (int rank : {0, 1, 2, 3}) {
    auto stage = rank, kept = (stage + 3) % 4;
    process_inventory process{
        rank, 7, {{7, {stage}, 1, own_memory}, {7, {kept}, 1, peer_memory}, {6, {stage}, 1, own_memory}}};
    if (rank == 2) process.parts.clear();
    inventories.push_back(process);
  }
  CHECK(testing::choose_restore_on(inventories, {0, 1, 2, 3}) ==
        restore_plan{
            7,
            false,
            {{{0}, 0, own_memory}, {{1}, 1, own_memory}, {{2}, 3, peer_memory}, {{3}, 3, own_memory}}});
}

TEST_CASE("a step that one stage lacks is not chosen, and parts of different generations fit together") {
  std::vector<process_inventory> inventories = {{0, 9, {{9, {0}, 2, own_memory}, {8, {0}, 1, own_memory}}},
                                                {1, 8, {{8, {1}, 2, own_memory}}}};
  CHECK(testing::choose_restore_on(inventories, {0, 1}) ==
        restore_plan{8, false, {{{0}, 0, own_memory}, {{1}, 1, own_memory}}});
}

TEST_CASE("a copy in memory is preferred to disk, and a newer step on disk to an older one in memory") {
  std::vector<process_inventory> inventories = {{0, 8, {{8, {0}, 1, disk}}},
                                                {1, 8, {{8, {0}, 1, peer_memory}}}};
  CHECK(testing::choose_restore_on(inventories, {0}) == restore_plan{8, false, {{{0}, 1, peer_memory}}});
  inventories[0].parts.push_back({9, {0}, 1, disk});
  CHECK(testing::choose_restore_on(inventories, {0}) == restore_plan{9, false, {{{0}, 0, disk}}});
}

TEST_CASE("an equal part of another replica stands for a lost one, unless parts belong to their replica") {
  // One stage in two replicas; the process of replica 0 was lost with all that it held.
  std::vector<process_inventory> inventories = {{0, 0, {}}, {1, 0, {{5, {{.replica = 1}}, 1, own_memory}}}};
  layout::part_id first{{.replica = 0}}, second{{.replica = 1}};
  auto equal = testing::job_on({0, 1}, 2, layout::replica_content::equal);
  CHECK(testing::choose_restore_of(inventories, equal) ==
        restore_plan{5, false, {{first, 1, own_memory, second}, {second, 1, own_memory}}});
  CHECK(testing::choose_restore_of(inventories, testing::job_on({0, 1}, 2)).from_scratch);
  // The process's own copy of the part itself comes before an equal one.
  inventories[0].parts = {{5, second, 1, own_memory}, {5, first, 1, peer_memory}};
  CHECK(testing::choose_restore_of(inventories, equal).sources[0] ==
        restore_source{first, 0, peer_memory, first});
}

TEST_CASE("for any inventories in any order the plan is that of an exhaustive search") {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    INFO("seed " << seed);
    auto made = testing::make_random_case(seed);
    auto plan = testing::choose_restore_of(made.inventories, made.job);
    REQUIRE(plan == oracle(made));
    std::mt19937_64 random(seed + 1);
    std::ranges::shuffle(made.inventories, random);
    for (auto& process : made.inventories) std::ranges::shuffle(process.parts, random);
    REQUIRE(testing::choose_restore_of(made.inventories, made.job) == plan);
  }
}

TEST_CASE("inventories and plans are decoded as they were encoded") {
  auto made = testing::make_random_case(5);
  auto plan = testing::choose_restore_of(made.inventories, made.job);
  REQUIRE_FALSE(made.inventories.empty());
  CHECK(wire::decode<std::vector<process_inventory>>(wire::encode(made.inventories)) == made.inventories);
  CHECK(wire::decode<restore_plan>(wire::encode(plan)) == plan);
}

TEST_CASE("each shard is restored where its owner is, from the owner's memory or from whoever keeps a copy") {
  // Stage 0 in two replicas, on ranks 3 and 5.
  auto job = testing::job_on({3, 5}, 2);
  job.placed = job.placed.with_shards({0});
  job.parts = parts_of(job.placed, layout::replica_content::own);
  layout::part_id first{{}, 0}, second{{}, 1};
  std::vector<process_inventory> inventories = {
      {3, 0, {{7, first, 1, own_memory}, {7, second, 1, peer_memory}}},
      {5, 0, {{7, second, 1, own_memory}, {7, first, 1, peer_memory}}}};
  auto plan = testing::choose_restore_of(inventories, job);
  CHECK(plan.step == 7);
  CHECK(plan.sources ==
        std::vector<restore_source>{{first, 3, own_memory, first}, {second, 5, own_memory, second}});
  // Rank 5 is a new process, which has nothing: its shard comes from the copy of rank 3.
  inventories[1].parts.clear();
  plan = testing::choose_restore_of(inventories, job);
  CHECK(plan.step == 7);
  CHECK(plan.sources ==
        std::vector<restore_source>{{first, 3, own_memory, first}, {second, 3, peer_memory, second}});
  // A shard that nobody has: the step cannot be restored.
  inventories[0].parts.pop_back();
  CHECK(testing::choose_restore_of(inventories, job).sources.empty());
}
