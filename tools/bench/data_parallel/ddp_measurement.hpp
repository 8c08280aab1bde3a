#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/data_parallel/emulated_link.hpp"
#include "troupe/process/process.hpp"

namespace troupe::bench {

/// What one measurement of `troupe bench ddp` trains, in processes of a job.
struct ddp_job {
  std::string model = "mlp";
  int ranks = 2;
  int threads = 1;         ///< threads of each process
  std::int64_t batch = 0;  ///< of each process; 0: the model's own
  double seconds = 4;      ///< least duration of each timing
  double bucket_size_mb = 25, first_bucket_mb = 1;
  std::vector<double> links;   ///< how long the gradients take over each, over the time of computing a step
  bool replicas = false;       ///< measure a pipeline's replicas beside
  bool named_calls = false;    ///< measure replicas over a named_communicator, too
  bool fsdp = false;           ///< measure FullyShardedDataParallel beside
  double unit_size_mb = 16;    ///< of its units
  std::string shard = "none";  ///< what the pipeline's replicas divide (Pipeline::shard)
  int stages = 1;              ///< of the pipeline, all on one device, which runs them as looped_bfs
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ddp_job, model, ranks, threads, batch, seconds,
                                                bucket_size_mb, first_bucket_mb, links, replicas, named_calls,
                                                shard, stages, fsdp, unit_size_mb)

/// Measures steps of DataParallel, those of a process alone and, if wanted, those of a pipeline's replicas
/// and of FullyShardedDataParallel, over each link; all processes of a job do this alike. `link`: the rate of
/// the link between replicas, which it sets. The result is that of rank 0, as `troupe bench ddp` prints it.
/// Throws std::runtime_error if the named communicator and the pipeline give other bits.
nlohmann::ordered_json measure_ddp(const ddp_job& job, actors::process::process& self,
                                   const std::shared_ptr<emulated_link>& link);

}  // namespace troupe::bench
