// One process of a pipeline of synthetic stages, one stage a process. Rank 0 prints how long each step took
// there, where it begins and ends.
#include <cstdio>

#include "bench/actor/actor_jobs.hpp"
#include "bench/benches.hpp"
#include "bench/measure/arguments.hpp"
#include "bench/pipeline/synthetic_stage.hpp"
#include "bench/processes/bench_node.hpp"

namespace troupe::bench {
namespace {

void run(const hop_job& options) {
  auto self = start_launched_node();
  auto stages = self->world_size();
  std::vector<stage_step> record(options.steps);
  auto job = std::make_shared<job_definition>();
  job->training = make_plan({schedule_kind_from(options.schedule), stages, options.microbatches, stages});
  job->snapshots.cadence.memory_every_steps = options.steps;
  job->make_program = [&](int stage) {
    return std::make_unique<synthetic_stage>(
        synthetic_stage_options{.stage = stage, .num_stages = stages, .size_bytes = options.size_bytes},
        record);
  };
  train_steps(*self, job, options.steps);
  auto rank = self->rank();
  self.reset();
  if (rank != 0) return;
  std::vector<double> spans;
  for (const auto& step : record)
    spans.push_back(1e-3 * static_cast<double>(step.last_end_ns - step.first_begin_ns));
  std::printf("%s\n", nlohmann::json{{"spans_us", spans}}.dump().c_str());
}

}  // namespace

void add_hop_worker(CLI::App& workers) {
  add_worker(workers, "hop", [](const nlohmann::json& job) { run(job.get<hop_job>()); });
}

}  // namespace troupe::bench
