#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "jobs/words.hpp"
#include "support/processes/run_process.hpp"

namespace troupe::testing {

/// A program in one process, or in several under `troupe launch` with these options of its own. No variable
/// of another job reaches it.
run_options worker_job(int num_processes, const words& program, const words& launch_options = {});

using values_by_key = std::map<std::string, std::set<std::string>>;

/// What the ranks of a job printed in lines "RANK KEY VALUE". A rank that was started again prints them
/// again.
struct printed_values {
  values_by_key values;                        ///< of all ranks
  std::map<std::string, std::set<int>> ranks;  ///< ranks that printed each key
};
printed_values printed_by(const process_result& result);

/// "POINT@rank=RANK,step=STEP", for --fault: the process is killed there.
std::string kill_at(const std::string& point, int rank, int step);
/// Processes of a job that a fault killed, as the launcher tells.
int num_kills(const process_result& result);

/// For a job without a launcher. No other test that runs takes it at the same time, and no socket that has
/// its port from the kernel.
std::string port_of_this_process();

}  // namespace troupe::testing
