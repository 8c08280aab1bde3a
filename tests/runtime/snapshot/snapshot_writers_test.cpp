#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <list>

#include "example_parts.hpp"
#include "runtime/files/child_process.hpp"
#include "support/temp_folder.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

using namespace troupe;
using namespace troupe::snapshot;
using namespace troupe::testing;
using steps = std::vector<std::uint64_t>;

namespace {

std::function<void(std::string_view)> killed_at(std::string_view deadly) {
  return [deadly](std::string_view point) {
    if (point == deadly) ::kill(::getpid(), SIGKILL);
  };
}

bool any_temporary(const std::filesystem::path& folder) {
  for (const auto& file : files_below(folder))
    if (file.find('~') != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("a writer killed before the manifest leaves the previous snapshot valid") {
  auto point = GENERATE("part_half_written", "part_written", "before_manifest");
  INFO(point);
  temp_folder folder;
  snapshot_store store({folder.path()});
  write_snapshot(store, 10);
  CHECK(signal_that_ended([&] {
          snapshot_store doomed({folder.path(), 2, killed_at(point)});
          write_snapshot(doomed, 20);
        }) == SIGKILL);
  std::vector<std::string> warnings;
  CHECK(newest_valid_step(store, &warnings) == 10);
  CHECK(warnings.empty());
  CHECK(any_temporary(folder.path()) == (point == std::string("part_half_written")));

  write_snapshot(store, 20);
  CHECK(newest_valid_step(store) == 20);
  CHECK(files_below(folder.path()).size() == 6);
}

TEST_CASE("a writer killed after the manifest leaves the new snapshot valid") {
  auto point = GENERATE("manifest_written", "manifest_removed");
  INFO(point);
  temp_folder folder;
  snapshot_store store({folder.path(), 1});
  write_snapshot(store, 10);
  CHECK(signal_that_ended([&] {
          snapshot_store doomed({folder.path(), 1, killed_at(point)});
          write_snapshot(doomed, 20);
        }) == SIGKILL);
  CHECK(newest_valid_step(store) == 20);
  CHECK(listed_steps(store) == steps{20, 10});
  bool half_removed = point == std::string("manifest_removed");
  CHECK(store.list()[1].state == (half_removed ? snapshot_state::incomplete : snapshot_state::ok));
  write_snapshot(store, 30);
  CHECK(listed_steps(store) == steps{30});
  CHECK(files_below(folder.path()).size() == 3);
}

TEST_CASE("a writer killed while it removes rolled back snapshots leaves none of them valid") {
  temp_folder folder;
  snapshot_store store({folder.path(), 5});
  for (auto step : {10, 30, 40}) write_snapshot(store, static_cast<std::uint64_t>(step));
  CHECK(signal_that_ended([&] {
          snapshot_store doomed({folder.path(), 5, killed_at("before_manifest")});
          write_snapshot(doomed, 20);
        }) == SIGKILL);
  CHECK(newest_valid_step(store) == 10);
}

TEST_CASE("files that a killed writer left in a step are removed when others commit that step") {
  temp_folder folder;
  snapshot_store store({folder.path()});
  auto first = store.write_part(10, {0}, encode_part(example_part(10, 0, 2)).bytes());
  auto bytes = encode_part(example_part(10, 1, 2));
  CHECK(signal_that_ended([&] {
          snapshot_store doomed({folder.path(), 2, killed_at("part_half_written")});
          doomed.write_part(10, {1}, bytes.bytes());
        }) == SIGKILL);
  CHECK(any_temporary(folder.path()));
  auto second = store.write_part(10, {1}, bytes.bytes());
  store.commit(example_manifest(10, {first, second}));
  CHECK_FALSE(any_temporary(folder.path()));
  CHECK(newest_valid_step(store) == 10);
}

TEST_CASE("a commit does not touch what a living writer is writing") {
  temp_folder folder;
  int half_written[2], committed[2];
  REQUIRE(::pipe(half_written) == 0);
  REQUIRE(::pipe(committed) == 0);
  auto wait_for_commit = [&](std::string_view point) {
    char byte = 0;
    if (point != "part_half_written") return;
    if (::write(half_written[1], &byte, 1) != 1 || ::read(committed[0], &byte, 1) != 1) ::_exit(2);
  };
  child_process writer([&] {
    snapshot_store slow({folder.path(), 2, wait_for_commit});
    slow.write_part(30, {0}, encode_part(example_part(30, 0, 1)).bytes());
  });
  char byte = 0;
  REQUIRE(::read(half_written[0], &byte, 1) == 1);
  snapshot_store store({folder.path()});
  write_snapshot(store, 20);
  REQUIRE(::write(committed[1], &byte, 1) == 1);
  CHECK(writer.wait_status() == 0);
  CHECK(std::filesystem::exists(folder.path() / "step-000000000030" / "stage-0000.part"));
  for (int end : {half_written[0], half_written[1], committed[0], committed[1]}) ::close(end);
}

TEST_CASE("many processes write the parts of one snapshot at once") {
  constexpr int num_stages = 6;
  temp_folder folder;
  std::vector<tensor> encoded;
  for (int stage = 0; stage < num_stages; ++stage)
    encoded.push_back(encode_part(example_part(50, stage, num_stages, 30'000)));
  std::list<child_process> writers;
  for (int stage = 0; stage < num_stages; ++stage)
    writers.emplace_back(
        [&] { snapshot_store({folder.path() / "new"}).write_part(50, {stage}, encoded[stage].bytes()); });
  for (auto& writer : writers) CHECK(writer.wait_status() == 0);

  std::vector<manifest_part> parts;
  snapshot_store store({folder.path() / "new"});
  for (int stage = 0; stage < num_stages; ++stage)
    parts.push_back({{stage},
                     "stage-000" + std::to_string(stage) + ".part",
                     encoded[stage].size_bytes(),
                     wire::to_hex(part_reader(source_in(encoded[stage].bytes())).checksum()),
                     ""});
  store.commit(example_manifest(50, parts));
  CHECK(newest_valid_step(store) == 50);
}
