#include "troupe/snapshot/snapshot_store.hpp"

#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "example_parts.hpp"
#include "support/temp_folder.hpp"
#include "troupe/files/temporary_name.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::snapshot;
using namespace troupe::testing;
using steps = std::vector<std::uint64_t>;

TEST_CASE("a committed snapshot is listed, verified and read back") {
  temp_folder folder;
  snapshot_store store({folder.path() / "deep" / "down"});
  store.prepare();
  auto manifest = write_snapshot(store, 120, 3);

  auto infos = store.list();
  REQUIRE(infos.size() == 1);
  CHECK(infos[0].step == 120);
  CHECK(infos[0].state == snapshot_state::ok);
  CHECK(infos[0].problem.empty());
  CHECK(store.verify(infos[0]).empty());
  auto newest = store.newest_valid([](const std::string& warning) { FAIL(warning); });
  REQUIRE(newest);
  CHECK(newest->created.size() == 20);
  newest->created.clear();
  CHECK(*newest == manifest);
  for (int stage = 0; stage < 3; ++stage)
    CHECK(same_tensors(tensors_in(store.open_part(*newest, {stage})), example_part(120, stage, 3).tensors));
  CHECK(files_below(folder.path() / "deep" / "down") ==
        std::vector<std::string>{"step-000000000120/manifest.json", "step-000000000120/stage-0000.part",
                                 "step-000000000120/stage-0001.part", "step-000000000120/stage-0002.part"});
}

TEST_CASE("a folder that does not exist has no snapshots") {
  temp_folder folder;
  snapshot_store store({folder.path() / "none"});
  CHECK(store.list().empty());
  CHECK(newest_valid_step(store) == 0);
}

TEST_CASE("a commit keeps the newest snapshots and removes older and incomplete ones") {
  temp_folder folder;
  snapshot_store store({folder.path(), 2});
  write_snapshot(store, 10);
  write_snapshot(store, 20);
  store.write_part(25, {0}, encode_part(example_part(25, 0, 2)).bytes());
  CHECK(listed_steps(store) == steps{25, 20, 10});
  write_snapshot(store, 30);
  CHECK(listed_steps(store) == steps{30, 20});
  CHECK(newest_valid_step(store) == 30);
}

TEST_CASE("a damaged snapshot does not count as one of the kept snapshots") {
  temp_folder folder;
  snapshot_store store({folder.path(), 2});
  write_snapshot(store, 10);
  write_snapshot(store, 20);
  std::filesystem::resize_file(folder.path() / "step-000000000020" / "stage-0001.part", 100);
  write_snapshot(store, 30);
  CHECK(listed_steps(store) == steps{30, 20, 10});
  write_snapshot(store, 40);
  CHECK(listed_steps(store) == steps{40, 30});
}

TEST_CASE("a damaged snapshot due for removal is set aside: it is not counted and never deleted") {
  temp_folder folder;
  snapshot_store store({folder.path(), 1});
  auto damage = [&](const char* step) {
    std::filesystem::resize_file(folder.path() / step / "stage-0001.part", 100);
  };
  write_snapshot(store, 30);
  damage("step-000000000030");
  write_snapshot(store, 20);  // the newer one belongs to a future that was rolled back
  damage("step-000000000020");
  write_snapshot(store, 40);
  write_snapshot(store, 50);
  CHECK(listed_steps(store) == steps{50});
  auto aside = store.list_set_aside();
  REQUIRE(aside.size() == 2);
  CHECK(aside[0].step == 30);
  CHECK(aside[1].step == 20);
  CHECK(aside[1].state == snapshot_state::set_aside);
  CHECK_THAT(aside[1].problem, ContainsSubstring("stage-0001.part has 100 bytes"));
  CHECK(store.verify(aside[1]).size() == 1);
  for (int round = 0; round < 2; ++round) {
    write_snapshot(store, 60);
    store.set_aside(store.list()[0]);
  }
  CHECK(store.list_set_aside().size() == 4);
  CHECK(store.verify(store.list_set_aside()[0]).empty());
}

TEST_CASE("parts of an abandoned snapshot are discarded, a complete snapshot is not") {
  temp_folder folder;
  snapshot_store store({folder.path()});
  write_snapshot(store, 10);
  store.write_part(20, {0}, encode_part(example_part(20, 0, 2)).bytes());
  for (std::uint64_t step : {10, 20, 30}) store.discard(step);
  CHECK(listed_steps(store) == steps{10});
  CHECK(newest_valid_step(store) == 10);
}

TEST_CASE("by default only the owner can access snapshots") {
  using std::filesystem::perms;
  auto mode_of = [](const std::filesystem::path& name) {
    return static_cast<unsigned>(std::filesystem::status(name).permissions());
  };
  struct expected {
    snapshot_access access;
    unsigned file, folder;
  };
  auto before = ::umask(027);
  for (auto [access, file, below] :
       {expected{snapshot_access::owner, 0600, 0700}, expected{snapshot_access::group, 0640, 0750},
        expected{snapshot_access::umask, 0640, 0750}}) {
    temp_folder folder;
    snapshot_store_options options{folder.path() / "snapshots"};
    options.access = access;
    snapshot_store store(options);
    store.prepare();
    write_snapshot(store, 10);
    auto step = options.folder / "step-000000000010";
    CHECK(mode_of(options.folder) == below);
    CHECK(mode_of(step) == below);
    CHECK(mode_of(step / "stage-0000.part") == file);
    CHECK(mode_of(step / "manifest.json") == file);
  }
  ::umask(before);
}

TEST_CASE("a commit removes snapshots of later steps, which were rolled back") {
  temp_folder folder;
  snapshot_store store({folder.path(), 2});
  write_snapshot(store, 100);
  write_snapshot(store, 120);
  write_snapshot(store, 110);
  CHECK(listed_steps(store) == steps{110, 100});
}

TEST_CASE("a commit does not touch newer parts that are being written") {
  temp_folder folder;
  snapshot_store store({folder.path(), 2});
  auto early = store.write_part(40, {0}, encode_part(example_part(40, 0, 2)).bytes());
  write_snapshot(store, 30);
  CHECK(listed_steps(store) == steps{40, 30});
  auto late = store.write_part(40, {1}, encode_part(example_part(40, 1, 2)).bytes());
  store.commit(example_manifest(40, {early, late}));
  CHECK(newest_valid_step(store) == 40);
}

TEST_CASE("a step that is written again replaces the one before") {
  temp_folder folder;
  snapshot_store store({folder.path()});
  write_snapshot(store, 10);
  auto again = example_part(10, 1, 2);
  again.generation = 9;
  auto manifest = *store.newest_valid([](const std::string&) {});
  manifest.parts[1] = store.write_part(10, {1}, encode_part(again).bytes());
  store.commit(manifest);
  CHECK(store.open_part(manifest, {1}).header().generation == 9);
  CHECK(newest_valid_step(store) == 10);
}

TEST_CASE("a manifest is checked against its parts before it is committed") {
  temp_folder folder;
  snapshot_store store({folder.path()});
  auto part = store.write_part(10, {0}, encode_part(example_part(10, 0, 2)).bytes());
  auto absent = part;
  absent.part = {{1}};
  absent.file = "stage-0001.part";
  CHECK_THROWS_WITH(store.commit(example_manifest(10, {part, absent})),
                    ContainsSubstring("stage-0001.part is missing"));
  CHECK_THROWS_AS(store.commit(example_manifest(10, {part, part})), std::invalid_argument);
  part.size_bytes += 1;
  CHECK_THROWS_WITH(store.commit(example_manifest(10, {part})), ContainsSubstring("instead of"));
  CHECK(store.list()[0].state == snapshot_state::incomplete);
}

TEST_CASE("a part on another host is no damage, but cannot be read") {
  temp_folder folder;
  snapshot_store store({folder.path()});
  auto here = store.write_part(10, {0}, encode_part(example_part(10, 0, 2)).bytes());
  manifest_part there{{{1}}, "stage-0001.part", 1000, "00", "another-" + files::host_name()};
  store.commit(example_manifest(10, {here, there}));
  CHECK(store.list()[0].state == snapshot_state::ok);
  auto problems = store.verify(store.list()[0]);
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], ContainsSubstring("stage-0001.part") &&
                              ContainsSubstring("on host another-" + files::host_name()));
}

TEST_CASE("impossible options and bytes that are no part are refused") {
  temp_folder folder;
  CHECK_THROWS_AS(snapshot_store(snapshot_store_options{}), std::invalid_argument);
  CHECK_THROWS_WITH(snapshot_store({folder.path(), 0}), ContainsSubstring("keep"));
  snapshot_store store({folder.path()});
  std::vector<std::byte> junk(500);
  CHECK_THROWS_AS(store.write_part(1, {0}, junk), files::snapshot_error);
  CHECK(store.list().empty());
  auto manifest = write_snapshot(store, 10);
  CHECK_THROWS_AS(store.open_part(manifest, {2}), std::invalid_argument);
}

TEST_CASE("foreign files are neither listed nor removed") {
  temp_folder folder;
  snapshot_store store({folder.path(), 1});
  for (auto name : {"notes.txt", "step-12", "step-x00000000012", ".stage-0000.part~1~2~3"})
    std::ofstream(folder.path() / name) << "mine";
  write_snapshot(store, 10);
  write_snapshot(store, 20);
  CHECK(listed_steps(store) == steps{20});
  CHECK(files_below(folder.path()).size() == 4 + 3);
}

TEST_CASE("steps with more digits than the padding of folder names are kept in order") {
  temp_folder folder;
  snapshot_store store({folder.path(), 3});
  write_snapshot(store, 999'999'999'999);
  write_snapshot(store, 1'000'000'000'000);
  CHECK(listed_steps(store) == steps{1'000'000'000'000, 999'999'999'999});
}
