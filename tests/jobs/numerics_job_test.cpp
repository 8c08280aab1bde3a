// What stages combine before the optimizer's step (tied weights, norms, a loss scale that overflows at
// first): the same bits however it is hosted, and when a process is killed in the middle of it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "jobs/job.hpp"
#include "support/temp_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe::testing;

namespace {

/// The small job with these options, names and values by turns, added or in place of its own.
std::vector<std::string> gpt_with(const std::vector<std::string>& more) {
  auto options = more;
  auto small = small_gpt_job();
  for (std::size_t i = 0; i < small.size(); i += 2)
    if (std::ranges::find(more, small[i]) == more.end())
      options.insert(options.end(), {small[i], small[i + 1]});
  return options;
}

/// In one process, one device and one stage, where nothing travels; computed once.
const job_outcome& undisturbed_gpt() {
  static const auto outcome = run_local(gpt_with({"--devices", "1", "--stages", "1"}), example::gpt);
  return outcome;
}

}  // namespace

TEST_CASE(
    "a tied, clipped GPT in f16 has the same bits on any number of devices and processes, checkpointed or "
    "not",
    "[numerics]") {
  REQUIRE(undisturbed_gpt().losses().size() == 12);
  for (const auto& layout : {std::vector<std::string>{"--devices", "1", "--stages", "4"},
                             {"--devices", "3"},
                             {"--devices", "2", "--checkpoint-blocks", "yes"},
                             {"--devices", "2", "--stages", "3", "--schedule", "gpipe"},
                             {"--devices", "2", "--stages", "4", "--schedule", "zb_v"},
                             {"--devices", "3", "--schedule", "zb_h2"}}) {
    auto outcome = run_local(gpt_with(layout), example::gpt);
    CHECK(outcome.weights_sha256() == undisturbed_gpt().weights_sha256());
    CHECK(outcome.losses() == undisturbed_gpt().losses());
  }
  auto processes = run_launched(4, gpt_with({}), {}, example::gpt);
  CHECK(processes.weights_sha256() == undisturbed_gpt().weights_sha256());
  CHECK(processes.losses() == undisturbed_gpt().losses());
}

TEST_CASE("steps whose gradients overflow in f16 are skipped until the loss scale fits", "[numerics]") {
  auto after_one = run_local(gpt_with({"--steps", "1"}), example::gpt).weights_sha256();
  CHECK(run_local(gpt_with({"--steps", "2"}), example::gpt).weights_sha256() == after_one);
  CHECK(undisturbed_gpt().weights_sha256() != after_one);
}

TEST_CASE("precision and effective clipping change the bits, and each precision in its own way",
          "[numerics]") {
  auto hash = [](const std::vector<std::string>& more) {
    return run_local(small_job(more)).weights_sha256();
  };
  auto plain = hash({});
  CHECK(hash({"--clip-grad-norm", "1e6"}) == plain);
  CHECK(hash({"--clip-grad-norm", "0.1"}) != plain);
  CHECK(hash({"--precision", "bf16"}) != plain);
  CHECK(hash({"--precision", "bf16"}) != hash({"--precision", "f16"}));
}

TEST_CASE("any rank may be killed while it combines gradients with the others", "[numerics]") {
  auto rank = GENERATE(0, 1, 2, 3);
  temp_folder folder;
  auto outcome = run_launched(4,
                              gpt_with({"--snapshot-every", "2", "--disk-every", "4", "--snapshot-dir",
                                        (folder.path() / "snapshots").string(), "--fault",
                                        "reduce@rank=" + std::to_string(rank) + ",step=7"}),
                              {}, example::gpt);
  INFO(outcome.process.errors);
  CHECK(outcome.weights_sha256() == undisturbed_gpt().weights_sha256());
  CHECK(outcome.named("recovery").size() == 1);
}

TEST_CASE("a job whose loss or gradients become NaN ends, and its last finite state is on disk",
          "[numerics]") {
  temp_folder folder;
  auto snapshots = (folder.path() / "snapshots").string();
  auto options = small_job();
  // After one step of this size f32 does not hold what a forward pass computes.
  for (const auto& each : {"--learning-rate", "1e37", "--snapshot-dir", snapshots.c_str(), "--json"})
    options.emplace_back(each);
  std::vector<std::string> command{TROUPE_PROGRAM,       "launch", "--nproc-per-node", "4", "--",
                                   FASHION_MNIST_PROGRAM};
  command.insert(command.end(), options.begin(), options.end());
  auto ended = run_process({.command = command, .environment = {}, .without = {}});
  INFO(ended.errors);
  CHECK(ended.exit_code == 1);
  CHECK_THAT(ended.errors, ContainsSubstring("is infinite or NaN") && ContainsSubstring("stage") &&
                               ContainsSubstring("--on-non-finite"));
  CHECK_THAT(ended.errors, !ContainsSubstring("starts again"));
  auto verified = run_process(
      {.command = {TROUPE_PROGRAM, "snapshot", "verify", snapshots}, .environment = {}, .without = {}});
  INFO(verified.output);
  CHECK(verified.exit_code == 0);
}
