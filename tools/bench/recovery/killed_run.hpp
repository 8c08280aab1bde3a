#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "bench/processes/launched_job.hpp"

namespace troupe::bench {

/// One process to be lost.
struct planned_kill {
  int rank = 0;
  /// The kill comes once this many steps are done and the job has caught up after the loss before.
  std::uint64_t step = 0;
  double into_next_step = 0;  ///< and so much of a step has passed since then, in [0, 1)
};

struct kill_plan_options {
  int num_kills = 20;
  std::vector<int> ranks;  ///< ranks to kill, in turn
  std::uint64_t least_steps_between = 20;
  std::uint64_t most_steps_between = 60;
  std::uint64_t seed = 1;
};

/// The same for the same options everywhere.
std::vector<planned_kill> plan_kills(const kill_plan_options& options);

/// One loss and how it was made up for.
struct measured_kill {
  int rank = 0;
  std::uint64_t step = 0;         ///< steps done when it was decided
  std::uint64_t rolled_back = 0;  ///< of those, how many had to be done again
  cluster::recovery_report report;
};

struct run_outcome {
  std::string weights_sha256;
  std::vector<measured_kill> kills;
  int num_unplanned = 0;  ///< recoveries that no kill here was the cause of
  int num_started = 0;    ///< processes, the first ones included
  double seconds = 0;     ///< duration of the whole job
  /// The lines {"event":"groups",..} that its processes have printed.
  std::vector<nlohmann::json> groups;
};

/// A training job whose processes are killed by plan, one after the other: the next only when the loss before
/// is made up for. The program prints {"event":"done","weights_sha256":..} at last.
class killed_run {
 public:
  killed_run(std::vector<std::string> command, int num_processes, std::vector<planned_kill> kills);
  /// Throws what launched_job::run throws, and std::runtime_error if the program printed no hash.
  run_outcome run();

 private:
  void on_progress(const cluster::job_progress& progress);
  void on_recovered(const cluster::recovery_report& report);
  void kill_next(std::chrono::steady_clock::duration step_time);

  std::vector<planned_kill> planned_;
  launched_job job_;
  run_outcome outcome_;
  bool pending_ = false;  ///< a kill was decided and is not made up for
  std::uint64_t generation_ = 0;
  std::uint64_t newest_step_ = 0;  ///< newest step of this generation
  std::chrono::steady_clock::time_point last_progress_;
  std::jthread killer_;
};

}  // namespace troupe::bench
