#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// The variables that are equal for all processes of a job.
struct job_identity {
  std::string job_id;
  std::string secret_hex;
  std::string master_addr;
  std::uint16_t master_port = 0;
  int world_size = 1;
  int max_restarts = 0;  ///< launch_options::max_restarts
  std::string stop_signals = {};
};

/// A process of the job.
struct process_identity {
  int rank = 0;
  std::uint32_t incarnation = 0;
  int events = -1;  ///< the descriptor of the memory for its events; -1: none
};

/// The launcher's own environment with the variables of config/environment/launch_environment.hpp set for one
/// process. Limits the spinning of waiting OpenMP threads, which would take cores from other processes:
/// GOMP_SPINCOUNT=1000, unless it or OMP_WAIT_POLICY is set.
std::vector<std::string> job_environment(const job_identity& job, const process_identity& one);

}  // namespace troupe
