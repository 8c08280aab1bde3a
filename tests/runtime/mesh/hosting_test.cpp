#include "troupe/mesh/hosting.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>
#include <random>
#include <stdexcept>

#include "troupe/wire/codec.hpp"

using namespace troupe;
using namespace troupe::mesh;
using enum held_as;
using enum member_role;

namespace {

troupe::mesh::placement devices(int num_devices) {
  return place_cells(make_plan({.num_stages = num_devices, .num_devices = num_devices}));
}

hosting on_ranks(const std::vector<int>& ranks) {
  std::vector<world_rank> members;
  for (auto rank : ranks) members.push_back({rank});
  return hosting(members);
}

view of_ranks(const std::vector<int>& ranks) {
  view present;
  for (auto rank : ranks) present.members.push_back({{rank}, active});
  return present;
}

/// A few members of any ranks and roles, one of them active at least.
view drawn_view(std::mt19937& random) {
  view present;
  for (int rank = 0; rank < 9; ++rank) {
    auto drawn = random() % 6;
    if (drawn < 4) present.members.push_back({{rank}, drawn < 2 ? active : drawn == 2 ? spare : leaving});
  }
  if (present.with_role(active).empty()) present.members.push_back({{9}, active});
  return present;
}

std::vector<holding> drawn_holdings(int num_devices, std::mt19937& random) {
  std::vector<holding> held;
  for (int device = 0; device < num_devices; ++device)
    for (int rank = 0; rank < 10; ++rank)
      if (random() % 3 == 0) held.push_back({{rank}, {device}, random() % 2 == 0 ? own : copy});
  return held;
}

std::vector<std::size_t> loads(const hosting& hosts, const view& present) {
  std::vector<std::size_t> all;
  for (auto member : present.with_role(active)) all.push_back(hosts.devices_of(member).size());
  return all;
}

}  // namespace

TEST_CASE("with as many devices for each member, device d begins on rank d / (devices per rank)") {
  for (int world_size = 1; world_size <= 5; ++world_size)
    for (int each = 1; each <= 3; ++each) {
      auto hosts = spread(devices(world_size * each), view_of_world(world_size));
      for (int device = 0; device < world_size * each; ++device)
        CHECK(hosts.member_of({device}) == device / each);
    }
}

TEST_CASE("devices that do not come out even begin in blocks of nearly equal size") {
  CHECK(spread(devices(3), view_of_world(2)) == on_ranks({0, 0, 1}));
  CHECK(spread(devices(2), view_of_world(4)) == on_ranks({0, 1}));
  CHECK(spread(devices(3), {1, {{{1}, spare}, {{2}, active}, {{4}, leaving}, {{6}, active}}}) ==
        on_ranks({2, 2, 6}));
}

TEST_CASE("members without a device, and with several, tell so") {
  auto hosts = on_ranks({1, 1, 3});
  CHECK(hosts.devices_of({0}).empty());
  CHECK(hosts.devices_of({1}) == std::vector<device_id>{{0}, {1}});
  CHECK(hosts.devices_of({3}) == std::vector<device_id>{{2}});
  CHECK(host_of(devices(3), hosts, {.stage = 2}) == world_rank{3});
  CHECK_THROWS_AS(hosts.member_of({3}), std::invalid_argument);
  CHECK_THROWS_AS(hosts.member_of({-1}), std::invalid_argument);
}

TEST_CASE("for any view and whatever is held: each device on one active member, and none above its share") {
  std::mt19937 random(1);
  for (int drawn = 0; drawn < 2000; ++drawn) {
    INFO("case " << drawn);
    auto num_devices = 1 + static_cast<int>(random() % 12);
    auto placed = devices(num_devices);
    auto before = spread(placed, drawn_view(random));
    auto present = drawn_view(random);
    auto held = drawn_holdings(num_devices, random);
    auto hosts = assign(placed, present, held, before);

    auto members = present.with_role(active);
    auto all = loads(hosts, present);
    REQUIRE(std::accumulate(all.begin(), all.end(), std::size_t{0}) == static_cast<std::size_t>(num_devices));
    auto share = (static_cast<std::size_t>(num_devices) + members.size() - 1) / members.size();
    REQUIRE(std::ranges::max(all) <= share);
    // No more devices move than must: those of members that are gone, and those above a share.
    std::size_t moved = 0, must = 0;
    for (int device = 0; device < num_devices; ++device)
      moved += hosts.member_of({device}) != before.member_of({device}) ? 1 : 0;
    for (int rank = 0; rank < 10; ++rank) {
      auto had = before.devices_of({rank}).size();
      must +=
          std::ranges::find(members, world_rank{rank}) == members.end() ? had : had - std::min(had, share);
    }
    REQUIRE(moved == must);
    // The same members: nothing moves, whatever they hold then.
    REQUIRE(assign(placed, present, drawn_holdings(num_devices, random), hosts) == hosts);
    std::ranges::shuffle(held, random);
    REQUIRE(assign(placed, present, held, before) == hosts);
  }
}

TEST_CASE("equal membership keeps what the job began with, also where a member was lost and replaced") {
  for (int num_devices = 1; num_devices <= 9; ++num_devices)
    for (int world_size = 1; world_size <= 5; ++world_size) {
      auto placed = devices(num_devices);
      auto before = spread(placed, view_of_world(world_size));
      // The neighbour holds copies of what the process that was started again lacks.
      std::vector<holding> held;
      for (int device = 0; device < num_devices; ++device)
        held.push_back({{(before.member_of({device}) + 1) % world_size}, {device}, copy});
      CHECK(assign(placed, view_of_world(world_size, 7), held, before) == before);
    }
}

TEST_CASE("in a smaller world a survivor that holds the copy takes over") {
  auto before = on_ranks({0, 1, 2, 3});
  CHECK(assign(devices(4), of_ranks({0, 1, 3}), {{{3}, {2}, copy}}, before) == on_ranks({0, 1, 3, 3}));
  CHECK(assign(devices(4), of_ranks({0, 1, 3}), {{{3}, {2}, copy}, {{1}, {2}, own}}, before) ==
        on_ranks({0, 1, 1, 3}));
  // Nobody holds it: the lowest of those with the fewest devices.
  CHECK(assign(devices(4), of_ranks({0, 1, 3}), {}, before) == on_ranks({0, 1, 0, 3}));
}

TEST_CASE("balance goes before holding a copy") {
  auto before = on_ranks({0, 0, 1, 1, 2, 2, 3, 3});
  std::vector<holding> held = {{{3}, {4}, copy}, {{3}, {5}, copy}};
  CHECK(assign(devices(8), of_ranks({0, 1, 3}), held, before) == on_ranks({0, 0, 1, 1, 3, 0, 3, 3}));
}

TEST_CASE("a larger world relieves members above their share") {
  CHECK(assign(devices(4), of_ranks({0, 1, 3}), {}, on_ranks({0, 0, 1, 1})) == on_ranks({0, 0, 1, 1}));
  CHECK(assign(devices(4), of_ranks({0, 1, 3, 4}), {{{4}, {1}, copy}}, on_ranks({0, 0, 1, 1})) ==
        on_ranks({0, 4, 1, 3}));
  // It comes back: its devices return to it, as the job began.
  CHECK(assign(devices(4), of_ranks({0, 1, 2, 3}), {{{3}, {2}, own}}, on_ranks({0, 1, 2, 3})) ==
        on_ranks({0, 1, 2, 3}));
}

TEST_CASE("spares and leaving members get no device") {
  view present{2, {{{0}, leaving}, {{1}, active}, {{2}, spare}, {{3}, active}}};
  CHECK(assign(devices(4), present, {{{2}, {0}, own}, {{0}, {0}, own}}, on_ranks({0, 1, 2, 3})) ==
        on_ranks({1, 1, 3, 3}));
}

TEST_CASE("a view without active members, and a hosting of other devices, are refused") {
  CHECK_THROWS_AS(spread(devices(1), {1, {{{0}, spare}}}), std::invalid_argument);
  CHECK_THROWS_AS(assign(devices(1), {}, {}, on_ranks({0})), std::invalid_argument);
  CHECK_THROWS_AS(assign(devices(2), view_of_world(2), {}, on_ranks({0})), std::invalid_argument);
}

TEST_CASE("a hosting is decoded as it was encoded, and its text names device and rank") {
  auto hosts = on_ranks({0, 0, 3});
  CHECK(wire::decode<hosting>(wire::encode(hosts)) == hosts);
  CHECK(hosting_text(hosts) == "device 0: rank 0\ndevice 1: rank 0\ndevice 2: rank 3\n");
}

TEST_CASE("the replicas of a stage are on one member or on several") {
  auto placed = place_cells(make_plan({.num_stages = 2, .num_devices = 2, .num_replicas = 3}));
  auto several = [&](const std::vector<int>& ranks, int stage) {
    return is_on_several_members(placed, on_ranks(ranks), {.stage = stage}, 3);
  };
  CHECK_FALSE(several({4, 4, 4, 4, 4, 4}, 0));
  CHECK_FALSE(several({0, 1, 0, 1, 0, 1}, 1));
  CHECK(several({0, 1, 0, 1, 0, 2}, 1));
  CHECK_FALSE(several({0, 1, 0, 1, 0, 2}, 0));
  CHECK(several({3, 1, 0, 1, 0, 1}, 0));
  CHECK(hosts_of_replicas(placed, on_ranks({3, 1, 0, 5, 0, 2}), {.stage = 1}, 3) ==
        std::vector<world_rank>{1, 5, 2});
}
