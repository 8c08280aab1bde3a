// PipeDream-2BW has bits of its own: those of one process with one stage, on any hosting and through
// failures.
#include <catch2/catch_test_macros.hpp>

#include "jobs/job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;

namespace {

/// 12 steps of a GPT whose embedding and head share their weights, clipped.
words flushed_job(const std::string& flush_every, const words& more = {},
                  const std::string& schedule = "pipedream_2bw") {
  return join({"--size", "tiny", "--steps", "12", "--batch", "8", "--microbatches", "4", "--clip-grad-norm",
               "0.5", "--schedule", schedule, "--flush-every", flush_every},
              more);
}

/// The same in f16, with a loss scale that is too large at first, so that steps are skipped.
const words scaled = {"--precision", "f16", "--loss-scale", "268435456"};

/// A process is lost before an action of the second run of the plan.
void check_recovers(int num_processes, const std::string& flush_every, const words& more,
                    const std::string& point, const std::string& expected) {
  temp_folder folder;
  INFO(num_processes << " processes, flush every " << flush_every << ", killed: " << point);
  auto options = join(flushed_job(flush_every, more),
                      {"--stages", "4", "--snapshot-dir", (folder.path() / "snapshots").string(), "--fault",
                       point + "@rank=0,step=1"});
  auto outcome = run_launched(num_processes, options, {}, example::gpt);
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == expected);
  CHECK(outcome.named("recovery").size() == 1);
}

}  // namespace

TEST_CASE(
    "PipeDream-2BW gives the bits of one stage on devices, in processes and after a failure, and others than "
    "1F1B",
    "[flushes]") {
  auto one = run_local(flushed_job("4", {"--stages", "1"}), example::gpt);
  auto devices = run_local(flushed_job("4", {"--stages", "4", "--devices", "3"}), example::gpt);
  CHECK(devices.weights_sha256() == one.weights_sha256());
  CHECK(devices.losses() == one.losses());
  auto steps = devices.named("step");
  REQUIRE(steps.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(steps[i]["step"] == 4 * (i + 1));
  check_recovers(2, "4", {}, "apply", one.weights_sha256());

  const words two = {"--stages", "2", "--devices", "2"};
  auto flushed = run_local(flushed_job("1", two), example::gpt);
  CHECK(flushed.weights_sha256() == run_local(flushed_job("1", two, "1f1b"), example::gpt).weights_sha256());
  CHECK(flushed.weights_sha256() != one.weights_sha256());
}

TEST_CASE("PipeDream-2BW recovers from a failure in each kind of action, with the bits of one stage",
          "[.soak][flushes]") {
  for (const words& more : {words{}, scaled})
    for (std::string flush_every : {"2", "3", "6"}) {
      auto expected =
          run_local(flushed_job(flush_every, join(more, {"--stages", "1"})), example::gpt).weights_sha256();
      for (int num_processes : {2, 4})
        for (std::string point : {"forward", "backward", "reduce", "apply"})
          check_recovers(num_processes, flush_every, more, point, expected);
    }
}
