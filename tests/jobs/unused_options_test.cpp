// Example programs refuse the options that they do not use, and their --help does not list them.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "jobs/words.hpp"
#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

process_result run(words command) {
  return run_process({.command = std::move(command),
                      .environment = {},
                      .without = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TROUPE_JOB_SECRET"},
                      .deadline = std::chrono::minutes(2)});
}

void check_refused(const words& command, const std::string& text) {
  auto result = run(command);
  INFO(command[0] << '\n' << result.output << result.errors);
  CHECK(result.exit_code == 2);
  CHECK(result.output.empty());
  CHECK_THAT(result.errors, ContainsSubstring(text));
}

/// `options`: names, each with its value in the same word list.
void check_not_used(const std::string& program, const std::vector<words>& options) {
  auto help = run({program, "--help"});
  CHECK(help.exit_code == 0);
  for (const auto& option : options) {
    words command = {program};
    command.insert(command.end(), option.begin(), option.end());
    check_refused(command, option[0] + " was given, but this program does not use it");
    CHECK_THAT(help.output, !ContainsSubstring(option[0] + " "));
  }
}

}  // namespace

TEST_CASE("programs with a loop of their own refuse the options of a Trainer, and make no folder",
          "[unused_options]") {
  temp_folder folder;
  auto snapshots = (folder.path() / "snapshots").string();
  const std::vector<words> of_trainer = {{"--steps", "1"},           {"--snapshot-dir", snapshots},
                                         {"--precision", "bf16"},    {"--clip-grad-norm", "1"},
                                         {"--schedule", "zb_h1"},    {"--stages", "2"},
                                         {"--device-map", "a.yaml"}, {"--resume"},
                                         {"--replicas", "4"}};
  for (const auto* program : {DATA_PARALLEL_PROGRAM, GROUPS_PROGRAM, TUTORIAL_OWN_LOOP})
    check_not_used(program, of_trainer);
  CHECK_FALSE(fs::exists(snapshots));
}

TEST_CASE("the data-parallel example uses --epochs, --seed and --learning-rate", "[unused_options]") {
  auto two = run({DATA_PARALLEL_PROGRAM, "--epochs", "2"});
  INFO(two.output << two.errors);
  CHECK(two.exit_code == 0);
  CHECK_THAT(two.output, ContainsSubstring("epoch  2 "));
  CHECK_THAT(run({DATA_PARALLEL_PROGRAM, "--help"}).output, ContainsSubstring("--epochs "));
  CHECK(run({DATA_PARALLEL_PROGRAM, "--epochs", "2", "--seed", "2"}).output != two.output);
  CHECK(run({DATA_PARALLEL_PROGRAM, "--epochs", "2", "--learning-rate", "1e-4"}).output != two.output);
}

TEST_CASE("tutorial programs with a Trainer refuse what they do not use", "[unused_options]") {
  check_not_used(TUTORIAL_WEIGHTS, {{"--data", "folder"}, {"--json"}});
  check_not_used(TUTORIAL_OWN_STEPS, {{"--data", "folder"}, {"--epochs", "2"}, {"--trace-dir", "folder"}});
  check_refused({TUTORIAL_WEIGHTS, "--load", "file", "--epochs", "2"},
                "--epochs was given, but --load, which only predicts, does not use it");
  check_refused({TUTORIAL_OWN_LOOP, "--lose", "first"}, "--lose: expected a whole number, got 'first'");
}

TEST_CASE("the tutorial about data says what it needs, and refuses options that a run does not use",
          "[unused_options]") {
  temp_folder folder;
  auto points = (folder.path() / "points").string(), position = (folder.path() / "position").string();
  check_refused({TUTORIAL_DATA}, "expected --write FILES, --points FILES or both, got neither");
  check_refused({TUTORIAL_DATA, "--loop", position}, "add --points FILES");
  check_refused({TUTORIAL_DATA, "--write", points, "--loop", position}, "add --points FILES");
  check_refused({TUTORIAL_DATA, "--write", points, "--epochs", "2"}, "--epochs was given");
  CHECK_FALSE(fs::exists(points));
  CHECK(run({TUTORIAL_DATA, "--write", points}).exit_code == 0);
  CHECK(fs::exists(points));
}
