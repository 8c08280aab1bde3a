#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "example_parts.hpp"
#include "support/temp_folder.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::snapshot;
using namespace troupe::testing;

namespace {

/// Snapshots of steps 10 and 20, and a way to damage the newer.
struct two_snapshots {
  temp_folder folder;
  snapshot_store store{{folder.path()}};
  std::filesystem::path newest = folder.path() / "step-000000000020";
  two_snapshots() {
    write_snapshot(store, 10);
    write_snapshot(store, 20);
  }
  void overwrite(const std::string& file, std::uint64_t at, char value) const {
    std::fstream stream(newest / file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at)).put(value);
  }
  /// The older one is used, and exactly one warning names the newer one and `what`.
  void check_skipped(const std::string& what) const {
    std::vector<std::string> warnings;
    CHECK(newest_valid_step(store, &warnings) == 10);
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], ContainsSubstring("step 20") && ContainsSubstring(what));
  }
};

}  // namespace

TEST_CASE("a part with a changed byte is named and the previous snapshot is used") {
  two_snapshots made;
  made.overwrite("stage-0001.part", 300, '!');
  CHECK(made.store.list()[0].state == snapshot_state::ok);  // its sizes are right
  auto problems = made.store.verify(made.store.list()[0]);
  REQUIRE(problems.size() == 1);
  CHECK_THAT(problems[0], ContainsSubstring("stage-0001.part") && ContainsSubstring("checksum"));
  made.check_skipped("stage-0001.part");
}

TEST_CASE("damaged results of calls are named and the previous snapshot is used") {
  two_snapshots made;
  auto manifest = *made.store.list()[0].manifest;
  std::vector<std::byte> block(100, std::byte{7});
  manifest.calls = made.store.write_calls(20, 1, [&](std::size_t) { return block; });
  made.store.commit(manifest);
  std::vector<std::byte> read;
  made.store.read_calls(*made.store.newest_valid([](auto&) {}),
                        [&](auto one) { read.assign(one.begin(), one.end()); });
  CHECK(read == block);
  made.overwrite("calls.part", 50, '!');
  CHECK(made.store.verify(made.store.list()[0]).size() == 1);
  made.check_skipped("calls.part");
  std::filesystem::remove(made.newest / "calls.part");
  CHECK_THAT(made.store.list()[0].problem, ContainsSubstring("calls.part is missing"));
}

TEST_CASE("a truncated part is named and the previous snapshot is used") {
  two_snapshots made;
  std::filesystem::resize_file(made.newest / "stage-0000.part", 77);
  CHECK(made.store.list()[0].state == snapshot_state::damaged);
  CHECK_THAT(made.store.list()[0].problem, ContainsSubstring("stage-0000.part has 77 bytes"));
  CHECK(made.store.verify(made.store.list()[0]).size() == 1);
  made.check_skipped("77 bytes");
}

TEST_CASE("a missing part is named and the previous snapshot is used") {
  two_snapshots made;
  std::filesystem::remove(made.newest / "stage-0000.part");
  made.check_skipped("stage-0000.part is missing");
}

TEST_CASE("a part that is not a file is named and the previous snapshot is used") {
  two_snapshots made;
  std::filesystem::remove(made.newest / "stage-0000.part");
  std::filesystem::create_directory(made.newest / "stage-0000.part");
  made.check_skipped("stage-0000.part");
}

TEST_CASE("a damaged manifest is named and the previous snapshot is used") {
  two_snapshots made;
  made.overwrite("manifest.json", 30, '!');
  CHECK(made.store.list()[0].state == snapshot_state::damaged);
  CHECK_FALSE(made.store.list()[0].manifest);
  CHECK(made.store.verify(made.store.list()[0]).size() == 1);
  made.check_skipped("manifest.json");
}

TEST_CASE("an empty and an oversized manifest are named") {
  two_snapshots made;
  std::filesystem::resize_file(made.newest / "manifest.json", 0);
  made.check_skipped("no manifest");
  std::filesystem::resize_file(made.newest / "manifest.json", std::uint64_t{1} << 40);
  made.check_skipped("1099511627776 bytes");
}

TEST_CASE("a manifest that nests too deep is named, and does not overflow the stack") {
  two_snapshots made;
  std::ofstream(made.newest / "manifest.json")
      << "{\"parts\":" << std::string(200'000, '[') << std::string(200'000, ']') << "}";
  made.check_skipped("nests deeper");
}

TEST_CASE("a manifest of no stages is named") {
  two_snapshots made;
  auto manifest = example_manifest(20, {});
  std::ofstream(made.newest / "manifest.json") << manifest_text(manifest);
  made.check_skipped("0 stages");
}

TEST_CASE("a part with a false size of terabytes is named before memory is allocated") {
  two_snapshots made;
  auto elements = std::uint64_t{4} << 40, checksums = elements / part_block_bytes * files::checksum_bytes;
  auto with_size = [&](std::uint64_t size) {
    auto manifest = *made.store.list()[0].manifest;
    manifest.parts[1].size_bytes = size;
    std::ofstream(made.newest / "manifest.json") << manifest_text(manifest);
    std::filesystem::resize_file(made.newest / "stage-0001.part", size);
  };
  auto with_lengths = [&](std::uint64_t header, std::uint64_t of_elements) {
    std::fstream stream(made.newest / "stage-0001.part", std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(16);
    stream.write(reinterpret_cast<const char*>(&header), 8);
    stream.write(reinterpret_cast<const char*>(&of_elements), 8);
  };
  SECTION("with other lengths in the part") {
    with_size(elements);
    made.check_skipped("its lengths say");
  }
  SECTION("with the same lengths in the part") {
    with_size(128 + elements + checksums + 32);
    with_lengths(64, elements);
    made.check_skipped("checksum");
  }
  SECTION("with a header of terabytes") {
    with_size(64 + elements + 32);
    with_lengths(elements, 0);
    made.check_skipped("at most 268435456");
  }
}

TEST_CASE("control characters from a file are escaped in errors") {
  two_snapshots made;
  auto manifest = *made.store.list()[0].manifest;
  manifest.parts[1].host = "else\x1b[2Jwhere\xc2\x9b";
  std::ofstream(made.newest / "manifest.json") << manifest_text(manifest);
  std::filesystem::remove(made.newest / "stage-0001.part");
  made.check_skipped("else\\x1b[2Jwhere\\xc2\\x9b");
}

TEST_CASE("a manifest of another step is named") {
  two_snapshots made;
  std::filesystem::copy_file(made.folder.path() / "step-000000000010" / "manifest.json",
                             made.newest / "manifest.json",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(made.store.verify(made.store.list()[0]).size() == 1);
  made.check_skipped("of step 10");
}

TEST_CASE("an intact part that is not the one in the manifest is named") {
  two_snapshots made;
  auto other = made.folder.path() / "step-000000000010" / "stage-0001.part";
  std::filesystem::copy_file(other, made.newest / "stage-0001.part",
                             std::filesystem::copy_options::overwrite_existing);
  made.check_skipped("stage-0001.part");
}

TEST_CASE("an intact part that replaced the committed one is named") {
  two_snapshots made;
  auto other = example_part(20, 1, 2);
  other.generation = 8;
  made.store.write_part(20, {1}, encode_part(other).bytes());
  made.check_skipped("as in the manifest");
}

TEST_CASE("a part of another stage under its own checksum is named") {
  temp_folder folder;
  snapshot_store store({folder.path()});
  auto part = store.write_part(10, {0}, encode_part(example_part(10, 1, 2)).bytes());
  store.commit(example_manifest(10, {part}));
  CHECK_THAT(store.verify(store.list()[0]).at(0),
             ContainsSubstring("stage 1 of 2 stages") && ContainsSubstring("stage 0 of 1 stages"));
}

TEST_CASE("an unfinished snapshot is skipped without a warning") {
  two_snapshots made;
  std::filesystem::remove(made.newest / "manifest.json");
  CHECK(made.store.list()[0].state == snapshot_state::incomplete);
  CHECK(made.store.verify(made.store.list()[0]).size() == 1);
  std::vector<std::string> warnings;
  CHECK(newest_valid_step(made.store, &warnings) == 10);
  CHECK(warnings.empty());
}

TEST_CASE("without a valid snapshot there is a warning for each one") {
  two_snapshots made;
  made.overwrite("stage-0000.part", 100, '!');
  std::filesystem::remove(made.folder.path() / "step-000000000010" / "stage-0000.part");
  std::vector<std::string> warnings;
  CHECK(newest_valid_step(made.store, &warnings) == 0);
  CHECK(warnings.size() == 2);
}
