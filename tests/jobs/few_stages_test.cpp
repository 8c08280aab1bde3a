// Fewer stages than processes, and devices that do not come out even: a process without a device is a member
// like any other, and the weights are those of one process.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>

#include "jobs/job.hpp"

using namespace troupe::testing;

namespace {

/// In one process, on one device; computed once for each number of stages.
const std::string& weights_of(const std::string& stages) {
  static std::map<std::string, std::string> known;
  auto [entry, is_new] = known.try_emplace(stages);
  if (is_new) entry->second = run_local(small_job({"--stages", stages})).weights_sha256();
  return entry->second;
}

/// Runs the job with a fault by which `lost` is killed once.
void check_fault(int num_processes, std::vector<std::string> layout, const std::string& fault, int lost) {
  INFO(fault);
  auto stages = layout.at(1);
  layout.insert(layout.end(), {"--snapshot-every", "2", "--fault", fault});
  auto outcome = run_launched(num_processes, small_job(layout));
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == weights_of(stages));
  REQUIRE(outcome.named("recovery").size() == 1);
  CHECK(outcome.named("recovery")[0]["rank"] == lost);
  CHECK(outcome.named("recovery")[0]["generation"] == 2);
}

}  // namespace

TEST_CASE("two stages over three and four processes give the bits of one", "[.soak][few_stages]") {
  auto num_processes = GENERATE(3, 4);
  auto outcome = run_launched(num_processes, small_job({"--stages", "2"}));
  CHECK(outcome.weights_sha256() == weights_of("2"));
  CHECK(outcome.named("step").size() == 12);
  auto devices = std::to_string(num_processes);
  CHECK_THAT(outcome.process.errors,
             Catch::Matchers::ContainsSubstring("2 stages for " + devices + " devices") &&
                 Catch::Matchers::ContainsSubstring("Use --stages " + devices));
  auto full = run_launched(2, small_job({"--stages", "2"}));
  CHECK_THAT(full.process.errors, !Catch::Matchers::ContainsSubstring("compute nothing"));
}

TEST_CASE("a job whose replicas need more devices than it has says that processes compute on more",
          "[few_stages]") {
  auto uneven = run_launched(3, small_job({"--stages", "2", "--replicas", "2", "--devices", "1"}));
  CHECK_THAT(uneven.process.errors, Catch::Matchers::ContainsSubstring("need 4 devices, and the job has 3") &&
                                        Catch::Matchers::ContainsSubstring("a multiple of 2"));
}

TEST_CASE("a process without a stage may be killed, and so may one whose copies it keeps", "[few_stages]") {
  // Stages are on ranks 0 and 1; rank 2 keeps what rank 1 has, rank 3 nothing.
  check_fault(4, {"--stages", "2"}, "keep_copy@rank=2,step=6", 2);
  check_fault(4, {"--stages", "2"}, "joined@rank=3", 3);
  check_fault(4, {"--stages", "2"}, "forward@rank=1,step=7", 1);
  check_fault(4, {"--stages", "2"}, "apply@rank=0,step=7", 0);
}

TEST_CASE("three devices over two processes give the bits of one, also if either process is killed",
          "[few_stages]") {
  auto rank = GENERATE(0, 1);
  check_fault(2, {"--stages", "3", "--devices", "2"}, "forward@rank=" + std::to_string(rank) + ",step=7",
              rank);
}

TEST_CASE("a job with more devices than its model has stages is not advised to use more stages",
          "[few_stages]") {
  auto few = run_launched(3, {"--size", "tiny", "--stages", "2", "--devices", "2", "--steps", "1"}, {},
                          example::gpt);
  CHECK_THAT(few.process.errors,
             Catch::Matchers::ContainsSubstring("layers for 4 stages: use fewer processes"));
}
