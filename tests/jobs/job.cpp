#include "jobs/job.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sstream>

namespace troupe::testing {
namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

job_outcome run(std::vector<std::string> command) {
  run_options options;
  options.command = std::move(command);
  options.deadline = std::chrono::minutes(4);
  options.without = {"RANK", "WORLD_SIZE"};
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

std::vector<std::string> small_job() { return {"--steps", "12", "--batch", "64", "--microbatches", "4"}; }

std::vector<std::string> small_gpt_job() {
  return {"--size",      "tiny", "--steps",          "12",  "--batch",      "8",        "--microbatches", "4",
          "--precision", "f16",  "--clip-grad-norm", "0.5", "--loss-scale", "268435456"};
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

job_outcome run_local(std::vector<std::string> options, example which) {
  std::vector<std::string> command = {program_of(which), "--json"};
  append(command, options);
  return run(command);
}

job_outcome run_launched(int num_processes, std::vector<std::string> options,
                         std::vector<std::string> launch_options, example which) {
  std::vector<std::string> command = {TROUPE_PROGRAM, "launch", "--json", "--nproc-per-node",
                                      std::to_string(num_processes)};
  append(command, launch_options);
  append(command, {"--", program_of(which), "--json"});
  append(command, options);
  return run(command);
}

}  // namespace troupe::testing
