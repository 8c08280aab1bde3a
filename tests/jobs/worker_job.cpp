#include "jobs/worker_job.hpp"

#include <unistd.h>

#include <sstream>

#include "jobs/count_of.hpp"

namespace troupe::testing {

run_options worker_job(int num_processes, const words& program, const words& launch_options) {
  run_options options;
  options.command = program;
  if (num_processes > 1) {
    words launcher = {TROUPE_PROGRAM, "launch", "--nproc-per-node", std::to_string(num_processes)};
    options.command = join(join(join(std::move(launcher), launch_options), {"--"}), program);
  }
  options.without = {"RANK",        "WORLD_SIZE",        "MASTER_ADDR",
                     "MASTER_PORT", "TROUPE_JOB_SECRET", "TROUPE_JOB_ID"};
  options.deadline = std::chrono::minutes(2);
  return options;
}

printed_values printed_by(const process_result& result) {
  printed_values all;
  std::istringstream lines(result.output);
  int rank = 0;
  for (std::string line, key, value; std::getline(lines, line);) {
    // The launcher puts "[RANK] " before each line.
    std::istringstream parts(line.starts_with('[') ? line.substr(line.find(' ')) : line);
    if (!(parts >> rank >> key >> value)) continue;
    all.values[key].insert(value);
    all.ranks[key].insert(rank);
  }
  return all;
}

std::string kill_at(const std::string& point, int rank, int step) {
  return point + "@rank=" + std::to_string(rank) + ",step=" + std::to_string(step);
}

int num_kills(const process_result& result) { return count_of(result.errors, "was killed by SIGKILL"); }

std::string port_of_this_process() { return std::to_string(20'000 + ::getpid() % 12'000); }

}  // namespace troupe::testing
