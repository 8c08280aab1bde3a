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
  launched_job(std::vector<std::string> command, int num_processes, int max_restarts,
               launch_callbacks callbacks = {});

  /// Runs the job to its end and returns the JSON objects that rank 0 printed. Throws bad_input if the
  /// program cannot be used, job_stopped if a signal to this process stopped it, and std::runtime_error with
  /// what the job printed if it failed.
  std::vector<nlohmann::json> run();
  /// While run() runs: kills the process of a rank. Thread-safe.
  void kill(int rank) { launcher_.kill(rank); }

 private:
  posix::unique_fd output_, errors_;
  launcher launcher_;
};

/// Runs a job that ends with the first process it loses. Returns and throws what launched_job::run does.
std::vector<nlohmann::json> run_launched(std::vector<std::string> command, int num_processes);
/// The first of these objects. Throws std::runtime_error if there is none.
nlohmann::json run_launched_for_object(std::vector<std::string> command, int num_processes);

/// Has mpirun start so many processes of a program on this host, and returns the JSON objects they printed.
/// Waiting processes yield their core where there are more processes than cores. Throws bad_input if there is
/// no mpirun or the program refused its input, std::runtime_error if it failed.
std::vector<nlohmann::json> run_by_mpirun(const std::vector<std::string>& command, int num_processes);

}  // namespace troupe::bench
