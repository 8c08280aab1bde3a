#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/data_parallel/named_communicator.hpp"
#include "bench/data_parallel/replica_of_model.hpp"
#include "troupe/process/process.hpp"
#include "troupe/snapshot/weights_hash.hpp"

namespace troupe::bench {

/// Trains what a replicated_pipeline trains, with the same program and to the same bits, over a
/// named_communicator and without a plan, actors and recovery: the least that its exchange can cost.
class named_replica {
 public:
  /// All processes do this alike. `link`: between the replicas.
  named_replica(const compute_model& model, actors::process::process& self, transport::send_delay_ptr link);
  named_replica(const named_replica&) = delete;
  named_replica& operator=(const named_replica&) = delete;

  /// As replicated_pipeline::run. No process may destroy this before all have returned.
  std::vector<step_moment> run(int count);
  /// As `weights_sha256` (snapshot/weights_hash.hpp).
  std::string weights_sha256() { return troupe::weights_sha256(program_->parameters()); }

 private:
  void step();
  void give(int bucket);
  void advance_update(bool waits);
  void end_update();

  int rank_, num_replicas_;
  named_communicator communicator_;
  step_moments moments_ = std::make_shared<std::vector<step_moment>>();
  std::shared_ptr<batch_source> batches_;
  std::unique_ptr<program::stage_program> program_;
  std::uint64_t num_steps_ = 0;  ///< begun so far
  std::vector<bool> given_;      ///< [buckets] of the current step
  std::size_t num_left_ = 0;     ///< buckets of the newest step whose sums were not taken
  bool is_updating_ = false;     ///< the newest step's update is not complete
};

}  // namespace troupe::bench
