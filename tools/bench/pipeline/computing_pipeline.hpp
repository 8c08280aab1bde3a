#pragma once
#include <string>
#include <vector>

#include "bench/measure/report.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::bench {

struct computing_options {
  std::string model = "gpt";  ///< gpt or mlp
  int steps = 10;
  int rounds = 2;  ///< how often all schedules are measured, in turn
  bool draws = false;
};

/// Trains a real model with each plan, all with as many microbatches, in one process, and compares each step
/// with its simulation, in which every action takes what it took in that step. Prints a result for each plan.
/// Returns whether the last steps' peaks of saved activations were those of the simulation. Throws bad_input
/// for what cannot be cut into so many stages or microbatches.
bool run_computing_pipelines(const std::vector<plan>& plans, const computing_options& options,
                             report& output);

}  // namespace troupe::bench
