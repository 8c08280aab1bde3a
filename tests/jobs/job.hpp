#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/processes/run_process.hpp"

namespace troupe::testing {

/// The result of a run of an example.
struct job_outcome {
  process_result process;
  std::vector<nlohmann::json> events;  ///< every line of standard output

  std::string weights_sha256() const;
  /// All events of this name.
  std::vector<nlohmann::json> named(const std::string& name) const;
};

/// Few, small steps: these tests do not check how well the model trains.
std::vector<std::string> small_job();
/// Both, one behind the other.
std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& more);

/// A GPT with tied weights, in f16 with a loss scale that is too large at first, and clipped.
std::vector<std::string> small_gpt_job();

enum class example { fashion_mnist, gpt };

/// The example in one process, or over `num_processes` under `troupe launch`, with --json. Fails the test if
/// it does not end with exit code 0.
job_outcome run_local(std::vector<std::string> options, example which = example::fashion_mnist);
job_outcome run_launched(int num_processes, std::vector<std::string> options,
                         std::vector<std::string> launch_options = {},
                         example which = example::fashion_mnist);

}  // namespace troupe::testing
