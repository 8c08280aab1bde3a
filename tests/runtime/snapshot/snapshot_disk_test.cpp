#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <exception>
#include <fstream>

#include "example_parts.hpp"
#include "runtime/files/mounted_tmpfs.hpp"
#include "support/temp_folder.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/file_size_limit.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::snapshot;
using namespace troupe::testing;

namespace {

/// Writes until the file system has no byte left.
void fill(const std::filesystem::path& file) {
  std::ofstream stream(file, std::ios::binary);
  std::string block(4096, 'x');
  while (stream.write(block.data(), 4096).flush()) {
  }
}

/// File permissions do not restrict root: runs as the user "nobody" during its lifetime.
class not_root {
 public:
  not_root() {
    if (before_ == 0) REQUIRE(::seteuid(65534) == 0);
  }
  not_root(const not_root&) = delete;
  not_root& operator=(const not_root&) = delete;
  ~not_root() {
    if (before_ == 0 && ::seteuid(0) != 0) std::terminate();
  }

 private:
  ::uid_t before_ = ::geteuid();
};

}  // namespace

TEST_CASE(
    "a part that does not fit on the disk is refused with file, reason and advice, and leaves no file") {
  mounted_tmpfs disk("256k");
  snapshot_store store({disk.path()});
  write_snapshot(store, 10);
  auto before = files_below(disk.path());
  auto large = encode_part(example_part(20, 0, 2, 200'000));
  CHECK_THROWS_WITH(store.write_part(20, {0}, large.bytes()),
                    ContainsSubstring("step-000000000020") && ContainsSubstring("stage-0000.part") &&
                        ContainsSubstring("No space left") && ContainsSubstring("Free space"));
  CHECK(files_below(disk.path()) == before);
  CHECK(newest_valid_step(store) == 10);

  write_snapshot(store, 30);
  CHECK(newest_valid_step(store) == 30);
  CHECK(listed_steps(store) == std::vector<std::uint64_t>{30, 10});
}

TEST_CASE("on a full disk unfinished and older snapshots are removed, never the newest complete one") {
  mounted_tmpfs disk("256k");
  snapshot_store store({disk.path(), 3});
  write_snapshot(store, 10);
  write_snapshot(store, 20);
  write_snapshot(store, 30);
  auto newest = disk.path() / "step-000000000030" / "stage-0000.part";
  std::fstream(newest, std::ios::in | std::ios::out | std::ios::binary).seekp(200).put('!');
  store.write_part(35, {0}, encode_part(example_part(35, 0, 2, 20'000)).bytes());
  auto large = encode_part(example_part(40, 0, 2, 40'000));
  store.write_part(40, {0}, large.bytes());
  CHECK(listed_steps(store) == std::vector<std::uint64_t>{40, 30, 20});
  CHECK(newest_valid_step(store) == 20);
}

TEST_CASE("snapshots continue when there is room again, whatever failed ones left behind") {
  mounted_tmpfs disk("320k");
  snapshot_store store({disk.path()});
  write_snapshot(store, 10);
  auto small = [](std::uint64_t step, int stage) {
    return encode_part(example_part(step, stage, 2, 15'000));
  };
  auto large = encode_part(example_part(1, 1, 2, 200'000));
  for (std::uint64_t step : {20, 30, 40, 50, 60}) {
    store.write_part(step, {0}, small(step, 0).bytes());
    CHECK_THROWS_AS(store.write_part(step, {1}, large.bytes()), files::disk_full);
  }
  auto first = store.write_part(70, {0}, small(70, 0).bytes());
  auto second = store.write_part(70, {1}, small(70, 1).bytes());
  store.commit(example_manifest(70, {first, second}));
  CHECK(newest_valid_step(store) == 70);
}

TEST_CASE("a part beyond the limit of file sizes is an error like a full disk, and leaves no file") {
  temp_folder folder;
  snapshot_store store({folder.path()});
  write_snapshot(store, 10);
  auto before = files_below(folder.path());
  auto large = encode_part(example_part(20, 0, 2, 200'000));
  files::ignore_file_size_signal();
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  auto lower = limit;
  lower.rlim_cur = 100'000;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &lower) == 0);
  std::string problem;
  try {
    store.write_part(20, {0}, large.bytes());
  } catch (const files::snapshot_error& refused) {
    problem = refused.what();
  }
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  CHECK_THAT(problem, ContainsSubstring("File too large") && ContainsSubstring("ulimit -f"));
  CHECK(files_below(folder.path()) == before);
  CHECK(listed_steps(store) == std::vector<std::uint64_t>{10});
}

TEST_CASE("only a regular file is overwritten") {
  temp_folder folder;
  auto target = folder.path() / "target";
  std::ofstream(target) << "mine";
  std::filesystem::create_symlink(target, folder.path() / "link");
  std::filesystem::create_directory(folder.path() / "folder");
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  std::vector<std::pair<std::filesystem::path, std::string>> refused{
      {folder.path() / "link", "a symbolic link"},
      {folder.path() / "folder", "a folder"},
      {folder.path() / "pipe", "a pipe"}};
  if (::geteuid() == 0) {
    auto device = folder.path() / "null";
    if (::mknod(device.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) refused.emplace_back(device, "a device");
  }
  std::array<std::byte, 4> bytes{};
  for (const auto& [name, kind] : refused) {
    INFO(name);
    auto before = std::filesystem::symlink_status(name).type();
    CHECK_THROWS_WITH(files::write_durably(name, bytes),
                      ContainsSubstring(kind) && ContainsSubstring("regular file"));
    CHECK(std::filesystem::symlink_status(name).type() == before);
  }
  files::write_durably(target, bytes);
  CHECK(std::filesystem::file_size(target) == 4);
}

TEST_CASE(
    "a manifest that does not fit on the disk leaves the previous snapshot valid, and can be committed "
    "later") {
  mounted_tmpfs disk("256k");
  snapshot_store store({disk.path()});
  write_snapshot(store, 10);
  auto part = store.write_part(20, {0}, encode_part(example_part(20, 0, 1)).bytes());
  fill(disk.path() / "ballast");
  CHECK_THROWS_WITH(store.commit(example_manifest(20, {part})),
                    ContainsSubstring("manifest.json") && ContainsSubstring("No space left"));
  CHECK(newest_valid_step(store) == 10);
  CHECK(store.list()[0].state == snapshot_state::incomplete);
  CHECK_THROWS_AS(store.prepare(), files::snapshot_error);

  std::filesystem::remove(disk.path() / "ballast");
  store.prepare();
  store.commit(example_manifest(20, {part}));
  CHECK(newest_valid_step(store) == 20);
}

TEST_CASE("a file system without room for another folder is reported") {
  mounted_tmpfs disk("16k,nr_inodes=3");
  snapshot_store store({disk.path()});
  std::ofstream(disk.path() / "one") << "";
  std::ofstream(disk.path() / "two") << "";
  CHECK_THROWS_WITH(store.write_part(10, {0}, encode_part(example_part(10, 0, 1)).bytes()),
                    ContainsSubstring("create the folder") && ContainsSubstring("No space left"));
}

TEST_CASE("a read-only file system is reported, and its snapshots can still be read") {
  mounted_tmpfs disk("256k");
  snapshot_store store({disk.path()});
  write_snapshot(store, 10);
  REQUIRE(disk.make_read_only());
  CHECK_THROWS_WITH(store.prepare(),
                    ContainsSubstring("Read-only") && ContainsSubstring("may read and write"));
  CHECK_THROWS_WITH(store.write_part(20, {0}, encode_part(example_part(20, 0, 1)).bytes()),
                    ContainsSubstring("Read-only"));
  CHECK(newest_valid_step(store) == 10);
}

TEST_CASE("a folder this user may not write is reported") {
  temp_folder folder;
  std::filesystem::permissions(folder.path(),
                               std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  not_root unprivileged;
  CHECK_THROWS_WITH(snapshot_store({folder.path()}).prepare(), ContainsSubstring("Permission denied"));
  CHECK_THROWS_WITH(snapshot_store({folder.path() / "new"}).prepare(),
                    ContainsSubstring("Permission denied") && ContainsSubstring("may read and write"));
}

TEST_CASE("a file where a folder should be is reported") {
  temp_folder folder;
  std::ofstream(folder.path() / "file") << "mine";
  for (auto name : {"file", "file/below"}) {
    snapshot_store store({folder.path() / name});
    CHECK_THROWS_WITH(store.prepare(), ContainsSubstring("/file") && ContainsSubstring("a folder is needed"));
    CHECK_THROWS_AS(store.write_part(1, {0}, encode_part(example_part(1, 0, 1)).bytes()),
                    files::snapshot_error);
    CHECK_THROWS_WITH(store.list(), ContainsSubstring("cannot read the folder"));
  }
}
