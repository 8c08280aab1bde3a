// Jobs of four processes with reductions that are paused and taken further by single steps, while processes
// are killed: the same results as of a job that is not disturbed.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <set>

#include "jobs/worker_job.hpp"

using namespace troupe::testing;

namespace {

process_result run_paused(const words& options) {
  words worker = {PAUSE_WORKER, "--steps",          "20", "--microbatches", "4", "--stages",
                  "4",          "--clip-grad-norm", "0.5"};
  return run_process(worker_job(4, join(worker, options)));
}

const values_by_key& undisturbed_values() {
  static const auto values = printed_by(run_paused({})).values;
  return values;
}

void check_undisturbed(const process_result& result, int kills) {
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  CHECK(num_kills(result) == kills);
  CHECK(undisturbed_values().at("steps") == std::set<std::string>{"20"});
  CHECK(printed_by(result).values == undisturbed_values());
}

}  // namespace

TEST_CASE(
    "a job that is paused for longer than the limit of progress and single-stepped trains the same bits",
    "[pause][timed]") {
  check_undisturbed(run_paused({"--control-rank", "1", "--hold-ms", "6000", "--progress-timeout", "2s"}), 0);
}

TEST_CASE("a process that is killed while the job stands within a step is replaced, and the job stands again",
          "[pause]") {
  auto [control, killed] = GENERATE(table<std::string, std::string>({{"0", "2"}, {"1", "0"}, {"3", "3"}}));
  INFO("rank " << control << " pauses the job, rank " << killed << " is killed");
  check_undisturbed(run_paused({"--control-rank", control, "--kill-rank", killed}), 1);
}

TEST_CASE("a process that is killed in an action of a single step is replaced", "[pause]") {
  auto fault = GENERATE("forward:kill@rank=2,step=2", "reduce:kill@rank=1,step=2", "apply:kill@rank=0,step=3",
                        "backward:kill@rank=3,step=5");
  INFO(fault);
  check_undisturbed(run_paused({"--control-rank", "1", "--fault", fault}), 1);
}
