#include "bench/data_parallel/replicated_pipeline.hpp"

#include <limits>
#include <utility>

#include "troupe/job/job_definition.hpp"
#include "troupe/ops/threads.hpp"

namespace troupe::bench {

replicated_pipeline::replicated_pipeline(const compute_model& model, actors::process::process& self,
                                         shard_strategy shard, int num_stages)
    : self_(self) {
  auto job = std::make_shared<actors::job::job_definition>();
  bool has_shards = shard != shard_strategy::none && self.world_size() > 1;
  job->place(make_plan({.kind = num_stages > 1 ? schedule_kind::looped_bfs : schedule_kind::one_f_one_b,
                        .num_stages = num_stages,
                        .num_devices = 1,
                        .num_replicas = self.world_size(),
                        .gathers = {.gathers = has_shards, .frees = shard == shard_strategy::full}}),
             self.world_size(), {}, has_shards);
  job->num_threads = num_threads();
  job->snapshots.cadence.memory_every_steps = std::numeric_limits<std::uint32_t>::max();
  job->make_program =
      make_replica_programs(model, moments_, {num_stages, shard, has_shards ? self.world_size() : 1});
  source_ = self_.add_source(make_replica_batches(model, self_.world_size()));
  self_.define(std::move(job));
}

std::vector<step_moment> replicated_pipeline::run(int count) {
  moments_->clear();
  actors::job::call_request request;
  request.kind = actors::job::call_kind::train;
  request.source = source_;
  request.target_step = num_steps_ += static_cast<std::uint64_t>(num_uncounted_steps + count);
  self_.run(request, {});
  return last_moments(*moments_, count);
}

std::string replicated_pipeline::weights_sha256() {
  actors::job::call_request request;
  request.kind = actors::job::call_kind::hash;
  request.target_step = num_steps_;
  return self_.run(request, {}).weights_sha256;
}

}  // namespace troupe::bench
