// Jobs of several processes that train a graph whose values skip stages: the same bits as in one process,
// also when processes are killed.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>
#include <sstream>

#include "support/run_process.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

using words = std::vector<std::string>;

process_result run_worker(int num_processes, const words& options, int steps = 12) {
  words command = {GRAPH_WORKER, "--steps", std::to_string(steps)};
  if (std::ranges::find(options, "--microbatches") == options.end())
    command.insert(command.end(), {"--microbatches", "4"});
  if (num_processes > 1) {
    words launcher = {TROUPE_PROGRAM, "launch", "--nproc-per-node", std::to_string(num_processes), "--"};
    command.insert(command.begin(), launcher.begin(), launcher.end());
  }
  command.insert(command.end(), options.begin(), options.end());
  return run_process({.command = command,
                      .environment = {},
                      .without = {"RANK", "WORLD_SIZE"},
                      .deadline = std::chrono::minutes(2)});
}

/// The values that all ranks printed, by key.
std::map<std::string, std::set<std::string>> printed_by(const process_result& result) {
  std::map<std::string, std::set<std::string>> values;
  std::istringstream lines(result.output);
  for (std::string line, rank, key, value; std::getline(lines, line);) {
    // The launcher puts "[RANK] " before each line.
    std::istringstream parts(line.starts_with('[') ? line.substr(line.find(' ')) : line);
    if (parts >> rank >> key >> value) values[key].insert(value);
  }
  return values;
}

const std::map<std::string, std::set<std::string>>& reference() {
  static const auto printed = printed_by(run_worker(1, {"--cut", "no", "--stages", "1"}));
  return printed;
}

void check_same_as_reference(const process_result& result) {
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  REQUIRE(reference().size() == 5);
  CHECK(printed_by(result) == reference());
}

}  // namespace

TEST_CASE("a graph over three processes and four stages gives the bits of one process and one stage") {
  check_same_as_reference(run_worker(1, {"--devices", "3"}));
  check_same_as_reference(run_worker(3, {}));
  check_same_as_reference(run_worker(3, {"--schedule", "gpipe", "--cut", "no", "--stages", "4"}));
}

TEST_CASE("any rank may be killed while a graph is trained: the bits are the same") {
  auto rank = GENERATE(0, 1, 2);
  auto result = run_worker(3, {"--fault", "apply@rank=" + std::to_string(rank) + ",step=7"});
  check_same_as_reference(result);
  CHECK_THAT(result.errors, ContainsSubstring("was killed by SIGKILL"));
}

TEST_CASE("replicas with running statistics of their own give the bits of one process, whatever is lost") {
  words replicas = {"--replicas", "2", "--microbatches", "2"};
  auto with = [&](words more) {
    more.insert(more.begin(), replicas.begin(), replicas.end());
    return more;
  };
  auto expected = printed_by(run_worker(1, with({"--cut", "no", "--stages", "1"})));
  REQUIRE(expected.size() == 5);
  for (int lost : {0, 1, 2, 3}) {
    temp_folder folder;
    auto result = run_worker(4, with({"--cut", "no", "--stages", "2", "--snapshot-every", "2", "--disk-every",
                                      "4", "--snapshot-dir", folder.path().string(), "--fault",
                                      "apply@rank=" + std::to_string(lost) + ",step=7"}));
    INFO("lost " << lost << "\n" << result.output << result.errors);
    REQUIRE(result.exit_code == 0);
    CHECK(printed_by(result) == expected);
  }
}

TEST_CASE("a graph resumes from its snapshot, with other cuts too") {
  temp_folder folder;
  auto in_folder = [&](words more, int steps = 12) {
    more.insert(more.end(), {"--snapshot-dir", folder.path().string()});
    return run_worker(1, more, steps);
  };
  REQUIRE(in_folder({}, 5).exit_code == 0);
  REQUIRE(in_folder({"--resume"}, 8).exit_code == 0);
  check_same_as_reference(in_folder({"--resume", "--cut", "no", "--stages", "4"}));
}
