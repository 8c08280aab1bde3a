// Real processes in which code does not return, while heartbeats go on, and processes whose heartbeats end.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "jobs/job.hpp"
#include "jobs/worker_job.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<std::string> hanging_job(const std::string& drill) {
  auto options = small_job();
  options.insert(options.end(), {"--stages", "4", "--progress-timeout", "3s", "--fault", drill});
  return options;
}

/// A process of a job of two without a launcher, of which rank 1 stops in step 7.
run_options stopped_job_by_hand(int rank) {
  run_options options;
  options.command = {FASHION_MNIST_PROGRAM, "--json"};
  for (const auto& option : small_job()) options.command.push_back(option);
  options.command.insert(options.command.end(), {"--stages", "2", "--suspect-after", "300ms", "--fault",
                                                 "forward:stop@rank=1,step=7"});
  options.environment = {{"RANK", std::to_string(rank)},
                         {"WORLD_SIZE", "2"},
                         {"MASTER_PORT", port_of_this_process()},
                         {"TROUPE_JOB_SECRET", std::string(64, 'c')}};
  return options;
}

}  // namespace

TEST_CASE("without a launcher a process that stops is noticed after rank 0's --suspect-after", "[hang]") {
  background_process stopped(stopped_job_by_hand(1));
  auto first = run_process(stopped_job_by_hand(0));
  CHECK(first.signal == 0);
  CHECK(first.exit_code == 1);
  CHECK_THAT(first.errors, ContainsSubstring("rank 1") && ContainsSubstring("no heartbeat for "));
}

TEST_CASE("the launcher's --suspect-after counts, and a program's is warned of", "[hang]") {
  auto options = small_job();
  options.insert(options.end(), {"--stages", "2", "--suspect-after", "1ms"});
  auto outcome = run_launched(2, options, {"--suspect-after", "60s"});
  CHECK(outcome.named("recovery").empty());
  CHECK_THAT(outcome.process.errors, ContainsSubstring("--suspect-after: the launcher's counts"));
}

TEST_CASE(
    "a stage or a loader that does not return in a job of four is named, its process killed and replaced",
    "[hang]") {
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

TEST_CASE("without a launcher a job whose stage does not return ends, and the error names the stage",
          "[hang]") {
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

TEST_CASE("a stage that does not return again after each restart ends the job, and is named", "[hang]") {
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

TEST_CASE("a process whose action takes longer than any wait outlives the loss of another one", "[hang]") {
  auto undisturbed = printed_by(run_process(worker_job(1, {LONG_ACTION_WORKER, "0"})));
  auto lost = run_process(worker_job(2, {LONG_ACTION_WORKER, "18", "--fault", kill_at("forward", 1, 2)},
                                     {"--join-timeout", "12s"}));
  INFO(lost.errors);
  CHECK(lost.exit_code == 0);
  CHECK_THAT(lost.errors, ContainsSubstring("rank 1 was killed by SIGKILL"));
  CHECK_THAT(lost.errors, ContainsSubstring("when device 0 ends its action"));
  auto printed = printed_by(lost);
  CHECK(printed.values["process"].size() == 3);  // that of rank 0, and two of rank 1
  CHECK(printed.values["weights"].size() == 1);
  CHECK(printed.values["weights"] == undisturbed.values["weights"]);
}
