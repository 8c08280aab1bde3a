#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <functional>

#include "example_parts.hpp"
#include "runtime/files/child_process.hpp"
#include "runtime/files/mounted_tmpfs.hpp"
#include "support/temp_folder.hpp"
#include "troupe/files/checksum.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::snapshot;
using namespace troupe::testing;

namespace {

/// Writes the only part of a step.
snapshot_manifest with_part(snapshot_store& store, std::uint64_t step) {
  return example_manifest(step, {store.write_part(step, {0}, encode_part(example_part(step, 0, 1)).bytes())});
}

/// Snapshots with the results of calls: of `result_bytes` each, the first of which is the number of the call.
struct snapshots_of_calls {
  temp_folder folder;
  snapshot_store store;
  std::size_t result_bytes = 9;
  std::size_t num_asked = 0;  ///< how many results were encoded
  std::function<void(std::size_t index)> at_result = [](std::size_t) {};
  std::vector<std::string> warnings;

  explicit snapshots_of_calls(int keep = 2) : store(options(keep)) {}
  snapshot_store_options options(int keep) {
    snapshot_store_options made{folder.path(), keep};
    made.warn = [this](const std::string& problem) { warnings.push_back(problem); };
    return made;
  }
  void write(std::uint64_t step, std::size_t num_results) {
    auto manifest = with_part(store, step);
    manifest.calls = store.write_calls(step, num_results, [this](std::size_t index) {
      at_result(index);
      ++num_asked;
      return std::vector<std::byte>(result_bytes, static_cast<std::byte>(index));
    });
    store.commit(manifest);
  }
  /// How many results this snapshot has, after a check that they are those of the first calls.
  std::size_t num_in(std::uint64_t step) const {
    std::size_t num_read = 0;
    for (const auto& info : store.list())
      if (info.step == step)
        store.read_calls(*info.manifest, [&](auto block) {
          REQUIRE(block.size() == result_bytes);
          REQUIRE(block[0] == static_cast<std::byte>(num_read++));
        });
    return num_read;
  }
  std::filesystem::path file(std::uint64_t step) const {
    return folder.path() / ("step-0000000000" + std::to_string(step)) / "calls.part";
  }
};

/// calls.part of manifests of format version 2: one block of 4 bytes, an end mark, the checksum.
std::string calls_file_of_version_2() {
  std::string text = "TROUPEBL";
  for (int value : {1, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 7, 7, 7, 7, 0, 0, 0, 0})
    text.push_back(static_cast<char>(value));
  auto sum = files::checksum_of(std::as_bytes(std::span(text)));
  return text + std::string(reinterpret_cast<const char*>(sum.data()), sum.size());
}

}  // namespace

TEST_CASE("a snapshot appends the results since an earlier one, and all snapshots have theirs") {
  snapshots_of_calls made;
  std::vector<std::size_t> asked;
  for (std::uint64_t step = 10; step < 90; step += 10) {
    made.num_asked = 0;
    made.write(step, 3 * step);
    asked.push_back(made.num_asked);
    CHECK(made.num_in(step) == 3 * step);
    if (step > 10) CHECK(made.num_in(step - 10) == 3 * (step - 10));
    for (const auto& info : made.store.list()) CHECK(made.store.verify(info).empty());
  }
  // Two files, which both begin; then each gets the results of two intervals.
  CHECK(asked == std::vector<std::size_t>{30, 60, 60, 60, 60, 60, 60, 60});
  CHECK_FALSE(std::filesystem::equivalent(made.file(80), made.file(70)));
  CHECK(made.warnings.empty());
}

TEST_CASE("results of calls that are damaged cost one snapshot, not the one before") {
  snapshots_of_calls made;
  for (std::uint64_t step : {10, 20, 30, 40}) made.write(step, step);
  std::fstream(made.file(40), std::ios::in | std::ios::out | std::ios::binary).seekp(50).put('!');
  std::vector<std::string> warnings;
  CHECK(newest_valid_step(made.store, &warnings) == 30);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("calls.part") && ContainsSubstring("damaged: checksum"));
  CHECK(made.num_in(30) == 30);
}

TEST_CASE("a store that keeps one snapshot appends to its file") {
  snapshots_of_calls made(1);
  for (std::uint64_t step : {10, 20, 30}) made.write(step, step);
  CHECK(made.num_asked == 30);
  CHECK(made.num_in(30) == 30);
}

TEST_CASE("a process that starts again writes all results once, and leaves earlier files as they are") {
  snapshots_of_calls made;
  made.write(10, 3);
  made.write(20, 5);
  made.num_asked = 0;
  made.store = snapshot_store(made.options(2));
  made.write(30, 7);
  made.write(40, 8);
  CHECK(made.num_asked == 15);
  made.write(50, 9);
  CHECK(made.num_asked == 17);
  CHECK(made.num_in(40) == 8);
  CHECK(made.num_in(50) == 9);
}

TEST_CASE("after a return to an earlier step its snapshots have exactly the results they are given") {
  snapshots_of_calls made;
  for (std::uint64_t step : {10, 20, 30, 40}) made.write(step, step);
  made.store.set_aside(made.store.list()[0]);
  made.store = snapshot_store(made.options(2));
  made.write(35, 32);
  CHECK(made.num_in(30) == 30);
  CHECK(made.num_in(35) == 32);
  made.write(35, 33);  // the same step again
  CHECK(made.num_in(35) == 33);
  made.write(40, 20);  // fewer than before
  CHECK(made.num_in(40) == 20);
  CHECK(made.num_in(35) == 33);
}

TEST_CASE("a process killed while it appends results leaves the snapshots before valid") {
  snapshots_of_calls made;
  made.result_bytes = 700'000;
  made.write(10, 2);
  made.write(20, 3);
  CHECK(signal_that_ended([&] {
          made.at_result = [](std::size_t index) {
            if (index == 8) ::kill(::getpid(), SIGKILL);
          };
          made.write(30, 10);
        }) == SIGKILL);
  CHECK(std::filesystem::file_size(made.file(10)) > 3 * made.result_bytes);  // torn
  made.store = snapshot_store(made.options(2));
  std::vector<std::string> warnings;
  CHECK(newest_valid_step(made.store, &warnings) == 20);
  CHECK(made.num_in(10) == 2);
  CHECK(made.num_in(20) == 3);
  CHECK(warnings.empty());
  made.write(30, 5);
  CHECK(made.num_in(30) == 5);
  for (const auto& name : files_below(made.folder.path())) CHECK(name.find('~') == std::string::npos);
}

TEST_CASE("after a write that failed, and if the last file is gone, the next snapshot has all results") {
  snapshots_of_calls made(1);
  made.write(10, 3);
  made.at_result = [](std::size_t) { throw files::snapshot_error("no such result"); };
  CHECK_THROWS_WITH(made.write(20, 5), "no such result");
  made.at_result = [](std::size_t) {};
  CHECK_FALSE(std::filesystem::exists(made.file(20)));
  CHECK(made.num_in(10) == 3);
  made.write(20, 5);
  CHECK(made.num_in(20) == 5);
  std::filesystem::remove_all(made.file(20).parent_path());
  made.write(30, 6);
  CHECK(made.num_in(30) == 6);
}

TEST_CASE("where no hard link can be made, every snapshot has all results, and one warning says so") {
  mounted_tmpfs disk("4m");
  snapshots_of_calls made(1);
  made.write(10, 3);
  for (std::uint64_t step : {20, 30}) {
    auto elsewhere = disk.path() / std::to_string(step);
    std::filesystem::create_directory(elsewhere);
    std::filesystem::create_directory_symlink(elsewhere, made.file(step).parent_path());
  }
  made.write(20, 5);
  CHECK(made.num_asked == 8);
  CHECK(made.num_in(20) == 5);
  REQUIRE(made.warnings.size() == 1);
  CHECK_THAT(made.warnings[0], ContainsSubstring("results of all calls") && ContainsSubstring("hard link"));
  made.write(30, 6);
  made.write(40, 7);
  CHECK(made.warnings.size() == 1);
  CHECK(made.num_in(40) == 7);
}

TEST_CASE("results that do not fit on the disk are refused, and fit after that") {
  mounted_tmpfs disk("512k");
  snapshot_store store({disk.path()});
  auto write = [&](std::uint64_t step, std::size_t num_results) {
    auto manifest = with_part(store, step);
    manifest.calls = store.write_calls(step, num_results,
                                       [](std::size_t) { return std::vector<std::byte>(100, std::byte{7}); });
    store.commit(manifest);
  };
  write(10, 100);
  write(20, 200);
  CHECK_THROWS_AS(write(30, 10'000), files::disk_full);
  CHECK(newest_valid_step(store) == 20);
  write(40, 300);
  std::size_t num_read = 0;
  store.read_calls(*store.newest_valid([](auto&) {}), [&](auto) { ++num_read; });
  CHECK(num_read == 300);
}

TEST_CASE("a snapshot of manifest version 2 is valid, without its results of calls") {
  temp_folder folder;
  snapshot_store store({folder.path()});
  auto part = with_part(store, 10).parts[0];
  auto step = folder.path() / "step-000000000010";
  auto calls = calls_file_of_version_2();
  std::ofstream(step / "calls.part", std::ios::binary) << calls;
  auto entry = [](const std::string& file, std::uint64_t size_bytes, const std::string& sum,
                  const std::string& host) {
    return R"("file":")" + file + R"(","size_bytes":)" + std::to_string(size_bytes) + R"(,"checksum":")" +
           sum + R"(","host":")" + host + R"("})";
  };
  auto text =
      R"({"troupe_snapshot":2,"job_id":"job-7","step":10,"generation":3,"num_stages":1,)"
      R"("numeric_class":"avx2","created":"2024-06-07T08:09:10Z","identity":[["seed","7"]],"calls":{)" +
      entry("calls.part", calls.size(), std::string(64, 'a'), part.host) + R"(,"parts":[{"stage":0,)" +
      entry(part.file, part.size_bytes, part.checksum, part.host) + "]";
  auto covered = text + "}";
  std::ofstream(step / "manifest.json")
      << text << R"(,"checksum":")" << wire::to_hex(files::checksum_of(std::as_bytes(std::span(covered))))
      << R"("})";
  std::vector<std::string> warnings;
  CHECK(newest_valid_step(store, &warnings) == 10);
  CHECK(warnings.empty());
  CHECK_FALSE(store.list()[0].manifest->calls);
}
