// Process groups of a job whose processes are on two hosts.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "jobs/count_of.hpp"
#include "jobs/words.hpp"
#include "support/processes/joined_namespaces.hpp"
#include "support/processes/run_process.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Matches;

namespace {

/// A job of the launcher on the first host, whose odd ranks begin by moving to the second one.
process_result launch_on(const joined_namespaces& hosts, int num_processes, const words& options) {
  auto first = hosts.name(0), second = hosts.name(1);
  std::string move =
      "if [ $((RANK % 2)) = 1 ]; then exec ip netns exec " + second + " \"$@\"; fi; exec \"$@\"";
  words command = {"ip",
                   "netns",
                   "exec",
                   first,
                   TROUPE_PROGRAM,
                   "launch",
                   "--nproc-per-node",
                   std::to_string(num_processes),
                   "--master-addr",
                   joined_namespaces::address(0),
                   "--",
                   "sh",
                   "-c",
                   move,
                   "move",
                   GROUP_WORKER,
                   "--network-interface",
                   joined_namespaces::interface};
  command.insert(command.end(), options.begin(), options.end());
  return run_process({.command = command,
                      .environment = {{"TROUPE_PROFILE", "1"}},
                      .without = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TROUPE_JOB_SECRET"},
                      .deadline = std::chrono::minutes(2)});
}

}  // namespace

TEST_CASE("processes on two hosts form overlapping groups, groups of one and slices of a mesh",
          "[hosts_groups]") {
  joined_namespaces hosts;
  auto result = launch_on(hosts, 5, {"--scenario", "groups"});
  INFO(result.output << result.errors);
  CHECK(result.exit_code == 0);
  CHECK(count_of(result.output, ": done") == 5);
  CHECK_THAT(result.errors, ContainsSubstring("hierarchy"));  // both hosts have several processes
}

TEST_CASE("a loop over groups on two hosts survives a killed rank of either, also in the next generation",
          "[hosts_groups]") {
  joined_namespaces hosts;
  for (int victim : {0, 3}) {
    auto result = launch_on(hosts, 4, {"--scenario", "loop", "--victim", std::to_string(victim)});
    INFO(result.output << result.errors);
    CHECK(result.exit_code == 0);
    CHECK(count_of(result.output, ": done") == 4);
    for (int rank = 0; rank < 4; ++rank)
      if (rank != victim)
        CHECK_THAT(result.output, Matches("(.|\n)*rank " + std::to_string(rank) + ": at step (9|10) lost " +
                                          std::to_string(victim) + "\n(.|\n)*"));
    CHECK_THAT(result.errors, ContainsSubstring("2/default") && ContainsSubstring("hierarchy"));
  }
}
