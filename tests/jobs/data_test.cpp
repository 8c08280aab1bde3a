// Each sample is used once per epoch, whatever fails: jobs whose model counts them, while processes are
// killed and jobs resumed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "jobs/count_of.hpp"
#include "jobs/worker_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr auto each_three_times = "samples 96 least 3 most 3";

process_result run_data(int num_processes, const words& options) {
  return run_process(worker_job(num_processes, join({DATA_WORKER}, options)));
}

/// The job ends well after so many kills, and has used each sample once in each of its three epochs.
void check_counts(const process_result& result, int kills) {
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  CHECK(count_of(result.output, "restarted") == kills);
  CHECK_THAT(result.output, ContainsSubstring(each_three_times));
}

}  // namespace

TEST_CASE("a Trainer uses each sample once per epoch while processes are killed and loaders fail", "[data]") {
  auto result =
      run_data(2, {"--fault", "load:fail@rank=0,step=14;apply@rank=1,step=20", "--microbatches", "4"});
  check_counts(result, 1);
  CHECK_THAT(result.errors, ContainsSubstring("new_generation=no"));  // the loader that was started again
}

TEST_CASE("replicas use each sample once per epoch while processes are killed and loaders fail", "[data]") {
  words replicas = {"--replicas", "2", "--microbatches", "2"};
  for (const char* fault : {"all_reduce@rank=3,step=5;apply@rank=0,step=20",
                            "load:fail@rank=1,step=9;forward@rank=2,step=13;copy_state@rank=1,step=17"}) {
    auto options = replicas;
    options.insert(options.end(), {"--snapshot-every", "2", "--fault", fault});
    check_counts(run_data(4, options), 2);
  }
}

TEST_CASE("a loop with DataLoaders uses each sample once per epoch while processes are killed", "[data]") {
  check_counts(run_data(3, {"--scenario", "loop", "--lose", "1@7,2@14"}), 2);
}

TEST_CASE("a resumed Trainer goes on at the exact sample within an epoch", "[data]") {
  temp_folder folder;
  words options = {"--snapshot-dir", (folder.path() / "run").string(), "--microbatches", "4"};
  auto with = [&](words more) {
    more.insert(more.end(), options.begin(), options.end());
    return run_data(2, more);
  };
  auto first = with({"--steps", "17"});
  INFO(first.output << first.errors);
  REQUIRE(first.exit_code == 0);
  CHECK_THAT(first.output, ContainsSubstring("samples 96 least 1 most 2"));
  auto other = with({"--resume", "--shuffle-buffer", "11"});
  CHECK(other.exit_code != 0);
  CHECK_THAT(other.errors, ContainsSubstring("the snapshot of step 17 is one of training on other data"));
  auto resumed = with({"--resume"});
  check_counts(resumed, 0);
  CHECK_THAT(resumed.output, ContainsSubstring("resumed at step 17"));
}

TEST_CASE("kills in any step of a loop or a Trainer leave each sample used once per epoch", "[.soak][data]") {
  for (int step = 0; step < 24; ++step) {
    CAPTURE(step);
    check_counts(
        run_data(3, {"--scenario", "loop", "--lose", std::to_string(step % 3) + "@" + std::to_string(step)}),
        1);
    for (const auto* point : {"load", "forward", "apply"}) {
      auto fault = std::string(point) + "@rank=" + std::to_string(step % 2) + ",step=" + std::to_string(step);
      check_counts(run_data(2, {"--fault", fault, "--microbatches", "4"}), 1);
    }
  }
}
