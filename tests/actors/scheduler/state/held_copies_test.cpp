#include "troupe/scheduler/state/held_copies.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::scheduler;

namespace {

constexpr auto own_copy = recovery::part_location::own_memory;
constexpr auto peer_copy = recovery::part_location::peer_memory;
const std::vector<layout::job_part> parts = {{{{.stage = 0}}}, {{{.stage = 1}}}};

/// Two processes with a stage each, of which each keeps the other's copies too.
void hold_all_copies(held_copies& held, std::uint64_t step) {
  for (int stage : {0, 1})
    for (int rank : {0, 1}) held.add(rank, {step, {stage}, 1, rank == stage ? own_copy : peer_copy}, parts);
}

}  // namespace

TEST_CASE("a step is committed when two processes hold each stage's copy of it") {
  held_copies held;
  held.add(0, {3, {0}, 1, own_copy}, parts);
  held.add(1, {3, {0}, 1, peer_copy}, parts);
  held.add(1, {3, {1}, 1, own_copy}, parts);
  CHECK(held.committed_step(parts) == 0);
  held.add(0, {3, {1}, 1, peer_copy}, parts);
  CHECK(held.committed_step(parts) == 3);
}

TEST_CASE("copies older than the committed step are forgotten") {
  held_copies held;
  hold_all_copies(held, 3);
  hold_all_copies(held, 4);
  for (const auto& process : held.inventories())
    for (const auto& part : process.parts) CHECK(part.step == 4);
}

TEST_CASE("a process's report of its copies replaces its earlier report") {
  held_copies held;
  hold_all_copies(held, 3);
  held.set({1, 0, {}});
  CHECK(held.committed_step(parts) == 0);
  CHECK(held.inventories()[0].parts.size() == 2);
  CHECK(held.inventories()[1].parts.empty());
}

TEST_CASE("after a rollback newer copies are forgotten, and after a start from scratch all copies") {
  held_copies held;
  hold_all_copies(held, 3);
  held.add(0, {5, {0}, 1, own_copy}, parts);
  held.roll_back({3, false, {}});
  CHECK(held.inventories()[0].parts.size() == 2);
  CHECK(held.committed_step(parts) == 3);
  held.roll_back({});
  CHECK(held.inventories()[0].parts.empty());
}

TEST_CASE("requested copies count as uncommitted until their step or a later one is committed") {
  held_copies held;
  for (std::uint64_t step : {1, 2, 3}) held.request(step);
  held.request(3);
  CHECK(held.num_uncommitted(parts) == 3);
  hold_all_copies(held, 2);
  CHECK(held.num_uncommitted(parts) == 1);
}

TEST_CASE("replicas that a process has lost no longer count, and owners still hold what was committed") {
  held_copies held;
  hold_all_copies(held, 3);
  held.lose_replicas(1, parts);
  CHECK(held.committed_step(parts) == 0);
  CHECK(held.held_by_owners(parts) == 3);
  CHECK(held.inventories()[0].parts.size() == 2);
  REQUIRE(held.inventories()[1].parts.size() == 1);
  CHECK(held.inventories()[1].parts[0] == recovery::held_part{3, {1}, 1, own_copy});
  held.add(1, {3, {0}, 1, peer_copy}, parts);
  CHECK(held.committed_step(parts) == 3);
  hold_all_copies(held, 5);
  CHECK(held.held_by_owners(parts) == 5);
  held.lose_replicas(7, parts);  // of a process that has told nothing
  CHECK(held.committed_step(parts) == 5);
  held.roll_back({});
  CHECK(held.held_by_owners(parts) == 0);
}
