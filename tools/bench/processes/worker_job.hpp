#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher.hpp"

namespace troupe::bench {

/// A job under a launcher in this process, whose output is kept. Its options may be changed before it runs.
class worker_job {
 public:
  worker_job(std::vector<std::string> command, int num_processes, launch_callbacks callbacks = {});
  ~worker_job();
  worker_job(const worker_job&) = delete;
  worker_job& operator=(const worker_job&) = delete;

  launch_options& options() { return options_; }
  /// The launcher, from run() on, for callbacks.
  launcher& running() { return *launcher_; }
  /// Runs it to its end and returns the JSON objects that rank 0 printed. Throws bad_input if the program
  /// cannot be used, std::runtime_error with what the job said if it failed.
  std::vector<nlohmann::json> run();

 private:
  launch_options options_;
  launch_callbacks callbacks_;
  int output_, errors_;
  std::unique_ptr<launcher> launcher_;
};

}  // namespace troupe::bench
