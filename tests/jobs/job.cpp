#include "jobs/job.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <sstream>

namespace troupe::testing {
namespace {

#ifdef JOB_DEVICE
/// On emulated GPUs, unless the command says where.
void set_device(run_options& options) {
  options.environment = {{"TROUPE_EMULATED_GPUS", NUM_JOB_GPUS}};
  if (std::ranges::find(options.command, "--device") == options.command.end())
    options.command = join(options.command, {"--device", JOB_DEVICE});
}
#else
void set_device(run_options&) {}
#endif

job_outcome run(words command) {
  run_options options;
  options.command = std::move(command);
  options.deadline = std::chrono::minutes(4);
  options.without = {"RANK", "WORLD_SIZE"};
  set_device(options);
  job_outcome outcome{run_process(options), {}};
  INFO(outcome.process.output);
  INFO(outcome.process.errors);
  REQUIRE(outcome.process.signal == 0);
  REQUIRE(outcome.process.exit_code == 0);
  std::istringstream lines(outcome.process.output);
  for (std::string line; std::getline(lines, line);) outcome.events.push_back(nlohmann::json::parse(line));
  return outcome;
}

std::string program_of(example which) { return which == example::gpt ? GPT_PROGRAM : FASHION_MNIST_PROGRAM; }

}  // namespace

std::string job_outcome::weights_sha256() const {
  auto done = named("done");
  REQUIRE(done.size() == 1);
  return done[0]["weights_sha256"];
}

std::vector<nlohmann::json> job_outcome::named(const std::string& name) const {
  std::vector<nlohmann::json> found;
  for (const auto& event : events)
    if (event["event"] == name) found.push_back(event);
  return found;
}

std::vector<double> job_outcome::losses() const {
  std::vector<double> all;
  for (const auto& event : named("step")) all.push_back(event["loss"]);
  return all;
}

job_bits bits_of(const job_outcome& outcome) { return {outcome.weights_sha256(), outcome.losses()}; }

words small_job(const words& more) {
  return join({"--steps", "12", "--batch", "64", "--microbatches", "4"}, more);
}

words small_gpt_job() {
  return {"--size",      "tiny", "--steps",          "12",  "--batch",      "8",        "--microbatches", "4",
          "--precision", "f16",  "--clip-grad-norm", "0.5", "--loss-scale", "268435456"};
}

job_outcome run_local(const words& options, example which) {
  return run(join({program_of(which), "--json"}, options));
}

job_outcome run_launched(int num_processes, const words& options, const words& launch_options,
                         example which) {
  words launcher = {TROUPE_PROGRAM, "launch", "--json", "--nproc-per-node", std::to_string(num_processes)};
  return run(join(join(launcher, launch_options), join({"--", program_of(which), "--json"}, options)));
}

}  // namespace troupe::testing
