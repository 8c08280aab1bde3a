#include "troupe/recovery/retention.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "random_inventories.hpp"
#include "troupe/recovery/restore_plan.hpp"

using namespace troupe;
using namespace troupe::recovery;
using enum part_location;

namespace {

std::vector<layout::job_part> stages(int num_stages) {
  return testing::job_on(std::vector<int>(static_cast<std::size_t>(num_stages))).parts;
}

void drop(std::vector<held_part>& held, const std::vector<held_part>& dropped) {
  std::erase_if(held,
                [&](const held_part& part) { return std::ranges::find(dropped, part) != dropped.end(); });
}

/// The process dies and comes back: what it had on disk is still there.
process_inventory respawned(process_inventory process) {
  std::erase_if(process.parts, [](const held_part& part) { return part.location != disk; });
  return process;
}

}  // namespace

TEST_CASE("a step is committed once two processes hold every part") {
  std::vector<process_inventory> processes = {{0, 5, {{5, {0}, 1, own_memory}, {5, {1}, 1, peer_memory}}},
                                              {1, 5, {{5, {1}, 1, own_memory}}}};
  CHECK(newest_committed_step(processes, stages(2)) == 0);
  processes[1].parts.push_back({5, {0}, 1, peer_memory});
  CHECK(newest_committed_step(processes, stages(2)) == 5);
}

TEST_CASE("two copies on one process are one") {
  std::vector<process_inventory> processes = {{0, 5, {{5, {0}, 1, own_memory}, {5, {0}, 1, peer_memory}}},
                                              {1, 5, {}}};
  CHECK(newest_committed_step(processes, stages(1)) == 0);
}

TEST_CASE("a step is committed once every part is on disk or held twice") {
  std::vector<process_inventory> processes = {{0, 5, {{5, {0}, 1, disk}, {5, {1}, 1, own_memory}}},
                                              {1, 5, {}}};
  CHECK(newest_committed_step(processes, stages(2)) == 0);
  processes[1].parts.push_back({5, {1}, 1, peer_memory});
  CHECK(newest_committed_step(processes, stages(2)) == 5);
}

TEST_CASE("an equal part on another replica's process is the second copy") {
  std::vector<process_inventory> processes = {{0, 5, {{5, {{.replica = 0}}, 1, own_memory}}},
                                              {1, 5, {{5, {{.replica = 1}}, 1, own_memory}}}};
  CHECK(newest_committed_step(processes, testing::job_on({0, 1}, 2, layout::replica_content::equal).parts) ==
        5);
  CHECK(newest_committed_step(processes, testing::job_on({0, 1}, 2).parts) == 0);
}

TEST_CASE("in a world of one a single copy is enough") {
  CHECK(newest_committed_step({{0, 5, {{5, {0}, 1, own_memory}}}}, stages(1)) == 5);
  CHECK(newest_committed_step({}, stages(1)) == 0);
}

TEST_CASE("a process drops what is older than the committed step, never what is newer or on disk") {
  std::vector<held_part> held = {{4, {0}, 1, own_memory}, {4, {3}, 1, peer_memory}, {4, {0}, 1, disk},
                                 {5, {0}, 1, own_memory}, {5, {3}, 1, peer_memory}, {6, {0}, 1, own_memory}};
  CHECK(droppable_parts(held, 5) == std::vector<held_part>{held[0], held[1]});
  CHECK(droppable_parts(held, 0).empty());
}

TEST_CASE("after dropping, no loss of a single process loses the committed step") {
  int committed_cases = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    INFO("seed " << seed);
    auto made = testing::make_random_case(seed);
    auto committed = newest_committed_step(made.inventories, made.job.parts);
    for (auto& process : made.inventories) drop(process.parts, droppable_parts(process.parts, committed));
    REQUIRE(newest_committed_step(made.inventories, made.job.parts) == committed);
    REQUIRE(testing::choose_restore_of(made.inventories, made.job).step >= committed);
    if (made.inventories.size() == 1 || committed == 0) continue;
    ++committed_cases;
    for (std::size_t lost = 0; lost < made.inventories.size(); ++lost) {
      auto survivors = made.inventories;
      survivors[lost] = respawned(survivors[lost]);
      REQUIRE(testing::choose_restore_of(survivors, made.job).step >= committed);
    }
  }
  CHECK(committed_cases > 300);
}

TEST_CASE("the committed step is the newest that survives every single loss") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    INFO("seed " << seed);
    auto made = testing::make_random_case(seed);
    if (made.inventories.size() == 1) continue;
    // A part survives every loss if each of the worlds with one process respawned still has it.
    auto survives = [&](std::uint64_t step, const layout::job_part& wanted) {
      for (std::size_t lost = 0; lost < made.inventories.size(); ++lost) {
        auto world = made.inventories;
        world[lost] = respawned(world[lost]);
        bool there = std::ranges::any_of(world, [&](const process_inventory& process) {
          return std::ranges::any_of(process.parts, [&](const held_part& part) {
            return part.step == step && stands_for(part.part, wanted);
          });
        });
        if (!there) return false;
      }
      return true;
    };
    std::uint64_t expected = 0;
    for (std::uint64_t step = 10; step <= 40; step += 10) {
      bool all = true;
      for (const auto& part : made.job.parts) all = all && survives(step, part);
      if (all) expected = step;
    }
    REQUIRE(newest_committed_step(made.inventories, made.job.parts) == expected);
  }
}
