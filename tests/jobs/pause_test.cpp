// Jobs of four processes with reductions that are paused and taken further by single steps, while processes
// are killed: the same results as of a job that is not disturbed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <map>
#include <set>
#include <sstream>

#include "support/processes/run_process.hpp"

using namespace troupe::testing;

namespace {

using words = std::vector<std::string>;

struct outcome {
  process_result process;
  std::map<std::string, std::set<std::string>> values;  ///< by name: what ranks printed

  std::size_t num_recoveries() const {
    std::size_t count = 0;
    const std::string text = "was killed by SIGKILL";
    for (auto at = process.errors.find(text); at != text.npos; at = process.errors.find(text, at + 1))
      ++count;
    return count;
  }
};

outcome run_worker(const words& options) {
  words command = {TROUPE_PROGRAM,     "launch", "--nproc-per-node", "4", "--",       PAUSE_WORKER,
                   "--steps",          "20",     "--microbatches",   "4", "--stages", "4",
                   "--clip-grad-norm", "0.5"};
  command.insert(command.end(), options.begin(), options.end());
  outcome seen;
  seen.process = run_process({.command = command,
                              .environment = {},
                              .without = {"RANK", "WORLD_SIZE"},
                              .deadline = std::chrono::minutes(2)});
  std::istringstream lines(seen.process.output);
  for (std::string line, rank, key, value; std::getline(lines, line);) {
    // The launcher puts "[RANK] " before each line.
    std::istringstream parts(line.starts_with('[') ? line.substr(line.find(' ')) : line);
    if (parts >> rank >> key >> value) seen.values[key].insert(value);
  }
  return seen;
}

const outcome& undisturbed() {
  static const auto run = run_worker({});
  return run;
}

void check_same(const outcome& seen, std::size_t num_recoveries) {
  INFO(seen.process.output << seen.process.errors);
  REQUIRE(seen.process.exit_code == 0);
  CHECK(seen.num_recoveries() == num_recoveries);
  CHECK(undisturbed().values.at("steps") == std::set<std::string>{"20"});
  CHECK(seen.values == undisturbed().values);
}

}  // namespace

TEST_CASE(
    "a job that is paused for longer than the limit of progress and single-stepped trains the same bits") {
  check_same(run_worker({"--control-rank", "1", "--hold-ms", "6000", "--progress-timeout", "2s"}), 0);
}

TEST_CASE(
    "a process that is killed while the job stands within a step is replaced, and the job stands again") {
  auto [control, killed] = GENERATE(table<std::string, std::string>({{"0", "2"}, {"1", "0"}, {"3", "3"}}));
  INFO("rank " << control << " pauses the job, rank " << killed << " is killed");
  check_same(run_worker({"--control-rank", control, "--kill-rank", killed}), 1);
}

TEST_CASE("a process that is killed in an action of a single step is replaced") {
  auto fault = GENERATE("forward:kill@rank=2,step=2", "reduce:kill@rank=1,step=2", "apply:kill@rank=0,step=3",
                        "backward:kill@rank=3,step=5");
  INFO(fault);
  check_same(run_worker({"--control-rank", "1", "--fault", fault}), 1);
}
