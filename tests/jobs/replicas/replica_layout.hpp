#pragma once
#include <string>
#include <vector>

#include "jobs/job.hpp"

namespace troupe::testing {

/// What replicas exchange: gradients in a dtype, the largest of them, factors of them, weights, or gradients
/// that are not clipped, so that updates end within the next step (stage_program::defer_update).
struct replica_layout {
  int replicas = 2;
  int stages = 2;
  int processes = 1;
  std::string schedule = "1f1b";
  std::string killed_in = {};  ///< the kind of action before which a process is lost; empty: none
  std::string exchange = "f32";
  int lost_rank = 0;
  std::string backend = "ucx";
  std::string shard = "none";  ///< no bit depends on it
};

/// 12 steps of a GPT whose embedding and head share their weights, mostly clipped, in f16 whose loss scale is
/// too large at first; or in bf16, where a loss scale is refused.
words job_of(const replica_layout& wanted, int num_steps = 12);

/// What such a job gives with schedule, stages, processes and the loss, and `more` options.
job_outcome run_layout(const replica_layout& wanted, const words& more = {});
/// Of one process with one device and one stage for each replica; computed once for each number of replicas
/// and what they exchange.
const job_bits& expected_bits(const replica_layout& wanted);
/// Checks that a job has the expected bits, and recovers if it loses a process.
void check_same_bits(const replica_layout& wanted);

}  // namespace troupe::testing
