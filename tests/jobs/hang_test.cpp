// Real processes in which code does not return, while heartbeats go on.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "jobs/job.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<std::string> hanging_job(const std::string& drill) {
  auto options = small_job();
  options.insert(options.end(), {"--stages", "4", "--progress-timeout", "3s", "--fault", drill});
  return options;
}

}  // namespace

TEST_CASE(
    "a stage or a loader that does not return in a job of four is named, its process killed and replaced") {
  auto [drill, rank, what] = GENERATE(table<std::string, int, std::string>(
      {{"forward:hang@rank=2,step=7", 2, "device 2 does not return from 2F"},
       {"backward:hang@rank=0,step=7", 0, "device 0 does not return from 0B"},
       {"apply:hang@rank=1,step=7", 1, "device 1 does not return from the optimizer's step of step 7"},
       {"load:hang@rank=3,step=7", 3, "its loader does not return from the dataset"}}));
  INFO(drill);
  static const auto undisturbed = [] {
    auto options = small_job();
    options.insert(options.end(), {"--stages", "4"});
    return run_local(options).weights_sha256();
  }();
  auto outcome = run_launched(4, hanging_job(drill));
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == undisturbed);
  REQUIRE(!outcome.named("recovery").empty());
  CHECK(outcome.named("recovery").back()["rank"] == rank);
  CHECK_THAT(outcome.process.errors, ContainsSubstring(what));
}

TEST_CASE("without a launcher a job whose stage does not return ends, and the error names the stage") {
  run_options options;
  options.command = {FASHION_MNIST_PROGRAM, "--json"};
  for (const auto& option : hanging_job("forward:hang@rank=0,step=7")) options.command.push_back(option);
  options.command.insert(options.command.end(), {"--devices", "4"});
  options.deadline = std::chrono::minutes(2);
  options.without = {"RANK", "WORLD_SIZE"};
  auto process = run_process(options);
  CHECK(process.signal == 0);
  CHECK(process.exit_code == 1);
  CHECK_THAT(process.errors, ContainsSubstring("does not return from"));
  CHECK_THAT(process.errors, ContainsSubstring("--progress-timeout"));
}

TEST_CASE("a stage that does not return again after each restart ends the job, and is named") {
  std::string drill;
  for (int incarnation = 0; incarnation < 3; ++incarnation)
    drill += (incarnation == 0 ? "" : ";") + std::string("forward:hang@rank=2,step=7,incarnation=") +
             std::to_string(incarnation);
  run_options options;
  options.command = {TROUPE_PROGRAM,        "launch", "--nproc-per-node", "4", "--",
                     FASHION_MNIST_PROGRAM, "--json"};
  for (const auto& option : hanging_job(drill)) options.command.push_back(option);
  options.deadline = std::chrono::minutes(3);
  options.without = {"RANK", "WORLD_SIZE"};
  auto process = run_process(options);
  INFO(process.errors);
  CHECK(process.signal == 0);
  CHECK(process.exit_code != 0);
  CHECK_THAT(process.errors, ContainsSubstring("it failed in the same way 3 times"));
  CHECK_THAT(process.errors, ContainsSubstring("device 2 does not return from 2F0 of step 7"));
}
