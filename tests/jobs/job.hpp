#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "jobs/words.hpp"
#include "support/processes/run_process.hpp"

namespace troupe::testing {

/// The result of a run of an example.
struct job_outcome {
  process_result process;
  std::vector<nlohmann::json> events;  ///< every line of standard output

  std::string weights_sha256() const;
  /// All events of this name.
  std::vector<nlohmann::json> named(const std::string& name) const;
  /// Of all steps, in order.
  std::vector<double> losses() const;
};

/// What two runs of a job must have in common.
struct job_bits {
  std::string weights_sha256;
  std::vector<double> losses;
  bool operator==(const job_bits&) const = default;
};
job_bits bits_of(const job_outcome& outcome);

/// Few, small steps: these tests do not check how well the model trains.
words small_job(const words& more = {});

/// A GPT with tied weights, in f16 with a loss scale that is too large at first, and clipped.
words small_gpt_job();

enum class example { fashion_mnist, gpt };

/// The example in one process, or over `num_processes` under `troupe launch`, with --json. Fails the test if
/// it does not end with exit code 0.
job_outcome run_local(const words& options, example which = example::fashion_mnist);
job_outcome run_launched(int num_processes, const words& options, const words& launch_options = {},
                         example which = example::fashion_mnist);

}  // namespace troupe::testing
