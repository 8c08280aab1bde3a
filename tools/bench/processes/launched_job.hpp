#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::bench {

/// A job under a launcher in this process, which keeps the job's output.
class launched_job {
 public:
  /// `max_restarts`: how many lost processes are started again.
  launched_job(std::vector<std::string> command, int num_processes, int max_restarts = 0,
               launch_callbacks callbacks = {});

  /// Runs the job to its end and returns the JSON objects that rank 0 printed. Throws bad_input if the
  /// program cannot be used, and std::runtime_error with what the job printed if it failed.
  std::vector<nlohmann::json> run();
  /// run(), and the first object with this key.
  nlohmann::json run_for(const char* key);
  /// While run() runs: kills the process of a rank. Thread-safe.
  void kill(int rank) { launcher_.kill(rank); }

 private:
  unique_fd output_, errors_;
  launcher launcher_;
};

}  // namespace troupe::bench
