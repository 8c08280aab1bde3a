#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/processes/run_process.hpp"

namespace troupe::testing {

using words = std::vector<std::string>;

words join(words first, const words& second);

/// A program in one process, or in several under `troupe launch` with these options of its own. No variable
/// of another job reaches it.
run_options worker_job(int num_processes, const words& program, const words& launch_options = {});

/// What the ranks of a job printed in lines "RANK KEY VALUE". A rank that was started again prints them
/// again.
struct printed_values {
  std::map<std::string, std::set<std::string>> values;  ///< by key, of all ranks
  std::map<std::string, std::set<int>> ranks;           ///< ranks that printed each key
};
printed_values printed_by(const process_result& result);

/// "POINT@rank=RANK,step=STEP", for --fault: the process is killed there.
std::string kill_at(const std::string& point, int rank, int step);

}  // namespace troupe::testing
