#include "troupe/scheduler/state/disk_snapshots.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::scheduler;
using namespace std::chrono_literals;

namespace {

constexpr disk_snapshots::clock::time_point began{};

actors::messages::part_written written(std::uint64_t step, int stage, const std::string& problem = {}) {
  auto name = std::to_string(stage);
  return {1, step, {{{stage}}, "stage-" + name, 100, "c" + name, "here"}, problem};
}

}  // namespace

TEST_CASE("the age of the last snapshot is the largest that a process reports") {
  disk_snapshots disk(began);
  disk.note_since_last(40s, began);
  disk.note_since_last(10s, began + 1s);
  CHECK(disk.since_last(began + 2s) == 42s);
  disk.announced(10, began + 3s);
  CHECK(disk.since_last(began + 4s) == 1s);
}

TEST_CASE("a snapshot is complete when its last part arrives, in any order") {
  disk_snapshots disk(began);
  disk.announced(10, began);
  CHECK(disk.is_pending(10));
  CHECK_FALSE(disk.add(written(10, 2), 3));
  CHECK_FALSE(disk.add(written(10, 0), 3));
  auto parts = disk.add(written(10, 1), 3);
  REQUIRE(parts);
  REQUIRE(parts->size() == 3);
  for (int stage = 0; stage < 3; ++stage) {
    const auto& part = (*parts)[static_cast<std::size_t>(stage)];
    CHECK(part.part == layout::part_id{{stage}});
    CHECK(part.file == "stage-" + std::to_string(stage));
    CHECK(part.checksum == "c" + std::to_string(stage));
  }
  CHECK(disk.is_pending(10));  // until the manifest is written
  disk.ended(10);
  CHECK_FALSE(disk.is_pending(10));
  CHECK(disk.num_pending() == 0);
}

TEST_CASE("snapshots in progress are kept apart") {
  disk_snapshots disk(began);
  disk.announced(10, began);
  disk.announced(11, began);
  CHECK(disk.num_pending() == 2);
  CHECK_FALSE(disk.add(written(10, 0), 2));
  CHECK_FALSE(disk.add(written(11, 1), 2));
  CHECK(disk.add(written(10, 1), 2));
  CHECK(disk.add(written(11, 0), 2));
}

TEST_CASE("a part that could not be written ends its snapshot, and later parts of it are ignored") {
  disk_snapshots disk(began);
  disk.announced(10, began);
  CHECK_FALSE(disk.add(written(10, 0), 2));
  CHECK_FALSE(disk.add(written(10, 1, "disk full"), 2));
  CHECK_FALSE(disk.is_pending(10));
  CHECK_FALSE(disk.add(written(10, 1), 2));
  CHECK_FALSE(disk.add(written(10, 0), 2));
}

TEST_CASE("parts of a snapshot that was not announced are ignored") {
  disk_snapshots disk(began);
  CHECK_FALSE(disk.add(written(10, 0), 1));
  CHECK(disk.num_pending() == 0);
}

TEST_CASE("the time runs from the newest announcement, or from the job's beginning") {
  disk_snapshots disk(began);
  CHECK(disk.since_last(began + 5s) == 5s);
  disk.announced(10, began + 7s);
  CHECK(disk.since_last(began + 8s) == 1s);
}

TEST_CASE("it is known which snapshots lack a part of some stages") {
  disk_snapshots disk(began);
  for (std::uint64_t step : {10, 11, 12}) disk.announced(step, began);
  disk.add(written(10, 1), 3);
  disk.add(written(11, 1), 3);
  disk.add(written(11, 2), 3);
  using steps = std::vector<std::uint64_t>;
  CHECK(disk.steps_without({{{1}}}) == steps{12});
  CHECK(disk.steps_without({{{1}}, {{2}}}) == steps{10, 12});
  CHECK(disk.steps_without({{{0}}}) == steps{10, 11, 12});
  CHECK(disk.steps_without({}).empty());
}
