// What a program says of its folders: one that another job uses, one that was filled, and a snapshot that has
// all steps already.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "jobs/words.hpp"
#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

run_options gpt(const words& options) {
  run_options run{.command = {GPT_PROGRAM, "--size", "tiny", "--threads", "1"},
                  .environment = {},
                  .without = {"RANK", "WORLD_SIZE"}};
  run.command.insert(run.command.end(), options.begin(), options.end());
  return run;
}

}  // namespace

TEST_CASE("a snapshot folder within a working directory that was removed is refused with that reason",
          "[snapshot_folder]") {
  temp_folder folder;
  auto program = gpt({"--steps", "2", "--snapshot-dir", "run"});
  program.command.insert(
      program.command.begin(),
      {"sh", "-c",
       "cd " + folder.path().string() + " && mkdir here && cd here && rmdir ../here && exec \"$@\"", "sh"});
  auto result = run_process(program);
  CAPTURE(result.errors);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.errors, ContainsSubstring("'run'") && ContainsSubstring("was removed"));
}

TEST_CASE("a job in whose folder another one writes is refused, and loses nothing of it",
          "[snapshot_folder]") {
  temp_folder folder;
  auto path = (folder.path() / "run").string();
  background_process first(gpt({"--epochs", "1000", "--snapshot-dir", path, "--disk-every", "1", "--json"}));
  first.wait_for_line("\"event\":\"step\"");
  for (const auto* more : {"--resume", "--fresh-start"}) {
    auto second = run_process(gpt({"--steps", "2", "--snapshot-dir", path, more}));
    CHECK(second.exit_code == 2);
    CHECK_THAT(second.errors, ContainsSubstring("the folder " + path + " is in use by job") &&
                                  ContainsSubstring("process " + std::to_string(first.pid())));
  }
  first.signal(SIGKILL);
  first.wait();
  auto resumed = run_process(gpt({"--steps", "1", "--snapshot-dir", path, "--resume"}));
  CHECK(resumed.exit_code == 0);
  CHECK_THAT(resumed.output, ContainsSubstring("resumed from step"));
}

TEST_CASE("a snapshot that is named as the folder of snapshots is refused with that folder, and stays",
          "[snapshot_folder]") {
  temp_folder folder;
  auto path = folder.path() / "run";
  auto first = run_process(gpt({"--steps", "2", "--snapshot-dir", path.string()}));
  REQUIRE(first.exit_code == 0);
  // No rate is known yet at the first step.
  CHECK_THAT(first.output, ContainsSubstring("step 1/2 ") && ContainsSubstring("  - samples/s  - left"));
  auto snapshot = path / "step-000000000002";
  auto check_refused = [&](const run_options& run) {
    auto result = run_process(run);
    CAPTURE(run.command, result.errors);
    CHECK(result.exit_code == 2);
    CHECK_THAT(
        result.errors,
        ContainsSubstring("is one snapshot, not a folder of snapshots. Name the folder that it is in, '" +
                          std::filesystem::canonical(path).string() + "'"));
  };
  auto num_files = std::distance(std::filesystem::directory_iterator(snapshot), {});
  check_refused(gpt({"--steps", "4", "--resume", "--snapshot-dir", snapshot.string() + "/"}));
  check_refused({.command = {GPT_PROGRAM, "--size", "tiny", "--sample-from", snapshot.string()},
                 .environment = {},
                 .without = {"RANK", "WORLD_SIZE"}});
  for (const auto* command : {"list", "verify", "show"})
    check_refused({.command = {TROUPE_PROGRAM, "snapshot", command, snapshot.string()},
                   .environment = {},
                   .without = {}});
  CHECK(std::distance(std::filesystem::directory_iterator(snapshot), {}) == num_files);
}

TEST_CASE("a program says that a snapshot has all steps already, and which one is the newest",
          "[snapshot_folder]") {
  temp_folder folder;
  auto path = (folder.path() / "run").string();
  auto trained = run_process(gpt({"--steps", "3", "--snapshot-dir", path}));
  CHECK(trained.exit_code == 0);
  CHECK_THAT(trained.output, ContainsSubstring("snapshots: " + path + "\n"));
  auto again = run_process(gpt({"--steps", "2", "--snapshot-dir", path, "--resume"}));
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.output, ContainsSubstring("nothing was trained: the snapshot has all steps of this fit"));
}

TEST_CASE("a program does not name snapshots and traces that could not be written", "[snapshot_folder]") {
  temp_folder folder;
  auto snapshots = folder.path() / "run", traces = folder.path() / "traces";
  // What is written has another name first, which cannot be made over a folder's.
  auto run = gpt({"--steps", "2", "--snapshot-dir", snapshots.string(), "--trace-dir", traces.string()});
  std::filesystem::create_directories(traces / "trace-rank-0.json");
  std::filesystem::create_directories(snapshots);
  std::ofstream(snapshots / "step-000000000002") << "in the way";
  auto ended = run_process(run);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(ended.output, ContainsSubstring("no snapshots could be written to " + snapshots.string()) &&
                               ContainsSubstring("no trace could be written to " + traces.string()) &&
                               ContainsSubstring("weights sha256"));
  CHECK_THAT(ended.errors, ContainsSubstring("there is no trace of this fit"));
}
