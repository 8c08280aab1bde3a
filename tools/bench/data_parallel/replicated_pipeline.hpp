#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/data_parallel/replica_of_model.hpp"
#include "troupe/process/process.hpp"

namespace troupe::bench {

/// Trains a compute model as a pipeline on one device with a replica in each process of a job
/// (Pipeline::replicas), each of which computes the batches of train_step. State is copied at the end of a
/// call only.
class replicated_pipeline {
 public:
  /// All processes do this alike. `self` outlives it. No other job may be defined while it is used.
  replicated_pipeline(const compute_model& model, actors::process::process& self, shard_strategy shard,
                      int num_stages);

  /// Trains num_uncounted_steps, then `count` more; all processes together. Returns when this
  /// process's replica came to the loss of each, and of the one before: [count + 1].
  std::vector<step_moment> run(int count);
  /// As `weights_sha256`; all processes together.
  std::string weights_sha256();

 private:
  actors::process::process& self_;
  step_moments moments_ = std::make_shared<std::vector<step_moment>>();
  std::uint32_t source_ = 0;
  std::uint64_t num_steps_ = 0;
};

}  // namespace troupe::bench
