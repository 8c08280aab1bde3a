// One process of a pipeline of empty stages, one stage a process. Rank 0 prints how long each step took
// there, where it begins and ends.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/actor/empty_stage.hpp"
#include "bench/processes/quiet_node.hpp"
#include "bench/processes/workers.hpp"

namespace troupe::bench {
namespace {

struct hop_worker_options {
  int microbatches = 1;
  std::uint64_t steps = 1;
  std::int64_t size_bytes = 4;
  std::string schedule = "1f1b";
};

void run(const hop_worker_options& options) {
  auto self = start_launched_node();
  auto stages = self->world_size();
  std::vector<step_times> record(options.steps);
  auto job = std::make_shared<job_definition>();
  job->training = make_plan({schedule_kind_from(options.schedule), stages, options.microbatches, stages});
  job->snapshots.cadence.memory_every_steps = options.steps;
  job->make_program = [&](int stage) {
    return std::make_unique<empty_stage>(empty_stage_options{stage, stages, options.size_bytes}, record);
  };
  train_steps(*self, job, options.steps);
  auto rank = self->rank();
  self.reset();
  if (rank != 0) return;
  std::vector<double> spans;
  for (const auto& step : record) spans.push_back(1e-3 * static_cast<double>(step.end_ns - step.begin_ns));
  std::printf("%s\n", nlohmann::json{{"spans_us", spans}}.dump().c_str());
}

}  // namespace

void add_hop_worker(CLI::App& app) {
  auto options = std::make_shared<hop_worker_options>();
  auto* command = app.add_subcommand("hop", "A stage that hands tensors on");
  command->add_option("--microbatches", options->microbatches, "Microbatches of a step");
  command->add_option("--steps", options->steps, "Steps");
  command->add_option("--bytes", options->size_bytes, "Size of the tensors");
  command->add_option("--schedule", options->schedule, "gpipe or 1f1b");
  command->callback([options] { run(*options); });
}

}  // namespace troupe::bench
