#include "troupe/mesh/placement.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <random>
#include <stdexcept>
#include <type_traits>

#include "troupe/mesh/view.hpp"

using namespace troupe;
using namespace troupe::mesh;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

// Stages, devices and members do not convert to each other; stages and devices nor from numbers.
static_assert(!std::is_convertible_v<int, device_id>);
static_assert(!std::is_convertible_v<int, layout::cell>);
static_assert(!std::is_convertible_v<world_rank, device_id>);
static_assert(!std::is_constructible_v<world_rank, device_id>);
static_assert(!std::is_constructible_v<device_id, layout::cell>);

TEST_CASE("a plan's placement has every cell exactly once, on its stage's device") {
  std::mt19937 random(1);
  for (int drawn = 0; drawn < 200; ++drawn) {
    INFO("case " << drawn);
    plan_options options;
    options.num_stages = 1 + static_cast<int>(random() % 9);
    options.num_devices = 1 + static_cast<int>(random() % static_cast<unsigned>(options.num_stages));
    auto training = make_plan(options);
    auto placed = place_cells(training);
    REQUIRE(placed.num_devices() == options.num_devices);
    std::map<layout::cell, int> times;
    for (const auto& device : placed.devices())
      for (const auto& one : placed.cells_of(device.id)) {
        ++times[one];
        REQUIRE(placed.device_of(one) == device.id);
      }
    REQUIRE(times.size() == static_cast<std::size_t>(options.num_stages));
    for (int stage = 0; stage < options.num_stages; ++stage) {
      REQUIRE(times[{.stage = stage}] == 1);
      REQUIRE(placed.device_of({.stage = stage}).number ==
              training.device_of_stage[static_cast<std::size_t>(stage)]);
    }
  }
}

TEST_CASE("placements are equal if and only if their texts are") {
  auto placed = place_cells(make_plan({.num_stages = 2, .num_devices = 2}));
  CHECK(placement_text(placed) ==
        "device 0 cpu 0\ndevice 1 cpu 0\nstage 0 replica 0 slice 0: device 0\nstage 1 replica 0 slice 0: "
        "device 1\n");
  std::vector<logical_device> two = {{.id = {0}}, {.id = {1}}};
  auto differs = [&](const troupe::mesh::placement& other) {
    CHECK_FALSE(other == placed);
    CHECK(placement_text(other) != placement_text(placed));
  };
  differs(troupe::mesh::placement(two, {{{.stage = 0}, {0}}, {{.stage = 1}, {0}}}));
  differs(troupe::mesh::placement(two, {{{.stage = 0}, {0}}, {{.stage = 1, .replica = 1}, {1}}}));
  differs(troupe::mesh::placement(two, {{{.stage = 0}, {0}}, {{.stage = 1, .slice = 1}, {1}}}));
  two[1].memory_limit_bytes = 1 << 30;
  differs(troupe::mesh::placement(two, placed.device_of_cell()));
  two[1] = {.id = {1}, .place = device::kind::cuda};
  differs(troupe::mesh::placement(two, placed.device_of_cell()));
}

TEST_CASE("a placement refuses devices out of order and cells on devices that do not exist") {
  CHECK_THROWS_AS(troupe::mesh::placement({{.id = {1}}}, {}), std::invalid_argument);
  CHECK_THROWS_MATCHES(
      troupe::mesh::placement({{.id = {0}}}, {{{.stage = 3}, {1}}}), std::invalid_argument,
      MessageMatches(ContainsSubstring("stage 3 replica 0 slice 0") && ContainsSubstring("got device 1")));
  auto placed = place_cells(make_plan({.num_stages = 2, .num_devices = 2}));
  CHECK_THROWS_MATCHES(placed.device_of({.stage = 2}), std::invalid_argument,
                       MessageMatches(ContainsSubstring("stage 2 replica 0 slice 0")));
}

TEST_CASE("the shards of a stage lie on the devices of its replicas, in place of the stage's parts") {
  auto whole =
      place_cells(make_plan({.num_stages = 2, .num_devices = 2, .num_replicas = 2, .num_slices = 2}));
  auto placed = whole.with_shards({1});
  using layout::part_id;
  // Lanes are replica by replica; lane l has devices 2 l and 2 l + 1.
  CHECK(placed.parts() == std::vector<part_id>{{{.stage = 0}},
                                               {{.stage = 0, .slice = 1}},
                                               {{.stage = 0, .replica = 1}},
                                               {{.stage = 0, .replica = 1, .slice = 1}},
                                               {{.stage = 1}, 0},
                                               {{.stage = 1}, 1},
                                               {{.stage = 1, .slice = 1}, 0},
                                               {{.stage = 1, .slice = 1}, 1}});
  CHECK(placed.device_of(part_id{{.stage = 1}, 0}) == device_id{1});
  CHECK(placed.device_of(part_id{{.stage = 1}, 1}) == device_id{5});
  CHECK(placed.device_of(part_id{{.stage = 1, .slice = 1}, 1}) == device_id{7});
  CHECK(placed.device_of(part_id{{.stage = 0, .replica = 1}, 0}) == device_id{4});
  for (const auto& [cell, device] : placed.device_of_cell()) {
    CHECK(placed.device_of(placed.part_of(cell)) == device);
    CHECK(placed.cell_of(placed.part_of(cell)) == cell);
    CHECK(whole.part_of(cell) == part_id{cell, 0});
  }
  CHECK(placed.part_of({.stage = 1, .replica = 1}) == part_id{{.stage = 1}, 1});
  CHECK(placed.device_of_cell() == whole.device_of_cell());
  CHECK_FALSE(placed == whole);
  CHECK(placement_text(placed) != placement_text(whole));
  CHECK(placement_text(placed).find("shard 1 of stage 1 replica 0 slice 1: device 7\n") != std::string::npos);
  CHECK_THROWS_AS(whole.with_shards({2}), std::invalid_argument);
  CHECK_THROWS_AS(placed.device_of(part_id{{.stage = 1}, 2}), std::invalid_argument);
  CHECK_THROWS_AS(placed.device_of(part_id{{.stage = 0}, 1}), std::invalid_argument);
  CHECK_THROWS_AS(placed.device_of(part_id{{.stage = 1, .replica = 1}, 0}), std::invalid_argument);
  auto alone = place_cells(make_plan({}));
  CHECK(placement_text(alone) != placement_text(alone.with_shards({0})));
}
