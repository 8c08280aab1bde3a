// troupe bench overlap: replicas whose stages sleep in place of computing add up gradients over a slow link.
// How much of the communication is exposed is held to the simulation of the plan.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/benches.hpp"
#include "bench/data_parallel/emulated_link.hpp"
#include "bench/measure/report.hpp"
#include "bench/measure/spread.hpp"
#include "bench/pipeline/synthetic_stage.hpp"
#include "bench/processes/bench_process.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job/job_definition.hpp"
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::bench {
namespace {

struct overlap_job {
  std::string schedule = "1f1b";
  int replicas = 2;
  int devices = 2;  ///< of each replica
  int microbatches = 4;
  double action_ms = 5;                   ///< of a device's F, I and W each
  std::int64_t gradient_bytes = 1 << 20;  ///< of each device's stages together
  int buckets = 4;                        ///< of each stage
  int steps = 20;
  std::vector<double> transfers = {0.25, 0.5, 1};

  /// Of a device, without idle time.
  double work_ms() const { return 3 * microbatches * action_ms; }
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(overlap_job, schedule, replicas, devices, microbatches,
                                                action_ms, gradient_bytes, buckets, steps, transfers)

int chunks_of(const overlap_job& job) { return usual_chunks(schedule_kind_from(job.schedule)); }

plan plan_of(const overlap_job& job) {
  return make_plan({.kind = schedule_kind_from(job.schedule),
                    .num_stages = job.devices * chunks_of(job),
                    .num_microbatches = job.microbatches,
                    .num_devices = job.devices,
                    .num_replicas = job.replicas});
}

/// In ms, of one stage. A device's gradients are under way for `transfer_ms`.
action_costs costs_of(const overlap_job& job, double transfer_ms) {
  auto each = job.action_ms / chunks_of(job);
  return {.forward = each,
          .input_gradient = each,
          .weight_gradient = each,
          .hands_on_early = true,
          .sum_transfer = transfer_ms / chunks_of(job),
          .num_buckets = job.buckets};
}

/// The link between two replicas' processes carries what all devices of one send.
std::uint64_t rate_for(const overlap_job& job, double transfer_ms) {
  auto bytes = static_cast<double>(job.gradient_bytes) * 2 * (job.replicas - 1) / job.replicas;
  return transfer_ms > 0 ? static_cast<std::uint64_t>(bytes / (1e-3 * transfer_ms)) : 0;
}

/// One device of each replica runs the plan: others would share the process's link.
class sleeping_replicas {
 public:
  sleeping_replicas(const overlap_job& job, actors::process::process& self)
      : job_(job), self_(self), running_(plan_of(job)) {
    auto total = static_cast<std::size_t>(job.steps + num_uncounted) * (job.transfers.size() + 1);
    records_.assign(static_cast<std::size_t>(running_.num_devices()), {std::vector<device_step>(total)});
    auto definition = std::make_shared<actors::job::job_definition>();
    definition->place(running_, self.world_size());
    definition->snapshots.cadence.memory_every_steps = std::numeric_limits<std::uint32_t>::max();
    definition->make_program = [this](const layout::cell& computed) { return make_stage(computed.stage); };
    auto rows = tensor::zeros({std::int64_t{job.microbatches} * job.replicas, 1}, dtype::u8);
    source_ = self_.add_source(make_constant_source({rows, rows}));
    self_.define(std::move(definition));
  }

  /// The median time from one step's begin to the next, in ms.
  double run() {
    auto first = static_cast<std::size_t>(num_steps_ + num_uncounted);
    num_steps_ += static_cast<std::uint64_t>(num_uncounted + job_.steps);
    actors::job::call_request request;
    request.kind = actors::job::call_kind::train;
    request.source = source_;
    request.target_step = num_steps_;
    self_.run(request, {});
    std::vector<double> periods;
    const auto& steps = records_.front().steps;
    for (auto step = first; step + 1 < num_steps_; ++step)
      periods.push_back(1e-6 *
                        static_cast<double>(steps[step + 1].first_begin_ns - steps[step].first_begin_ns));
    return median_of(std::move(periods));
  }

 private:
  static constexpr int num_uncounted = 3;

  std::unique_ptr<program::stage_program> make_stage(int stage) {
    auto costs = costs_of(job_, 0);
    auto time = std::chrono::nanoseconds(static_cast<std::int64_t>(1e6 * costs.forward));
    auto device = running_.device_of_stage[static_cast<std::size_t>(stage)];
    return std::make_unique<synthetic_stage>(
        synthetic_stage_options{.stage = stage,
                                .num_stages = running_.num_stages,
                                .forward = time,
                                .input_gradient = time,
                                .weight_gradient = time,
                                .gradient_bytes = job_.gradient_bytes / chunks_of(job_),
                                .num_buckets = job_.buckets},
        records_[static_cast<std::size_t>(device)]);
  }

  const overlap_job& job_;
  actors::process::process& self_;
  plan running_;
  std::vector<device_record> records_;
  std::uint32_t source_ = 0;
  std::uint64_t num_steps_ = 0;
};

/// Of rank 0: the step without a link, and with each.
void work(const overlap_job& job) {
  auto link = std::make_shared<emulated_link>();
  auto self = start_launched_process(link);
  sleeping_replicas replicas(job, *self);
  nlohmann::json line{{"step_ms", replicas.run()}};
  for (auto transfer : job.transfers) {
    link->set_bytes_per_s(rate_for(job, transfer * job.work_ms()));
    line["linked_step_ms"].push_back(replicas.run());
  }
  link->set_bytes_per_s(0);
  if (self->rank() == 0) std::printf("%s\n", line.dump().c_str());
}

struct overlap_options {
  overlap_job each;
  std::vector<std::string> schedules = {"gpipe", "1f1b", "zb_h1", "zb_v"};
  int rounds = 7;
  bool json = false;
};

void run(const overlap_options& options) {
  report output("overlap", options.json);
  output.note("overlap",
              "stages sleep in place of computing; each device of a replica has a process of its own");
  for (const auto& schedule : options.schedules) {
    auto job = options.each;
    job.schedule = schedule;
    if (schedule_kind_from(schedule) == schedule_kind::forward_only)
      throw bad_input("--schedule forward_only has no gradients to add up: give schedules that train");
    auto running = plan_of(job);
    auto alone = simulate(running, costs_of(job, 0)).makespan;
    std::vector<measurements> of_transfer(job.transfers.size());
    for (int round = 0; round < options.rounds; ++round) {
      auto told = run_launched_for_object(passively_waiting(worker_command("overlap", job)),
                                          job.replicas * job.devices);
      auto step = told.at("step_ms").get<double>();
      for (std::size_t i = 0; i < job.transfers.size(); ++i) {
        auto linked = told.at("linked_step_ms").at(i).get<double>();
        auto simulated = simulate(running, costs_of(job, job.transfers[i] * job.work_ms())).makespan - alone;
        of_transfer[i]["step_ms"].push_back(step);
        of_transfer[i]["exposed_ms"].push_back(linked - step);
        of_transfer[i]["step_over_simulated"].push_back(linked / (alone + simulated));
        if (simulated > 0) of_transfer[i]["exposed_over_simulated"].push_back((linked - step) / simulated);
      }
    }
    for (std::size_t i = 0; i < job.transfers.size(); ++i) {
      auto simulated = simulate(running, costs_of(job, job.transfers[i] * job.work_ms())).makespan - alone;
      nlohmann::ordered_json line{{"schedule", schedule},
                                  {"replicas", job.replicas},
                                  {"devices", job.devices},
                                  {"buckets", job.buckets},
                                  {"transfer_over_work", job.transfers[i]},
                                  {"simulated_step_ms", alone},
                                  {"simulated_exposed_ms", simulated}};
      add_spreads(of_transfer[i], line);
      if (simulated > 0)
        line["exposed_over_simulated_interval"] = median_interval(of_transfer[i]["exposed_over_simulated"]);
      output.add({{"schedule"},
                  {"transfer_over_work"},
                  {"simulated_exposed_ms"},
                  {"exposed_ms"},
                  {"exposed_over_simulated"},
                  {"step_over_simulated"}},
                 line);
    }
  }
}

}  // namespace

void add_overlap_bench(const bench_commands& to) {
  auto options = std::make_shared<overlap_options>();
  auto& each = options->each;
  auto& command = *to.bench.add_subcommand(
      "overlap",
      "Compare how much of the replicas' communication over slow links is exposed with the simulation");
  command.add_option("--schedule", options->schedules, "Names of schedules, with commas between")
      ->delimiter(',');
  command.add_option("--replicas", each.replicas, "Replicas of the pipeline")->check(CLI::Range(2, 16));
  command.add_option("--devices", each.devices, "Of each replica, a process each")->check(CLI::Range(1, 16));
  command.add_option("--microbatches", each.microbatches, "Of each replica")->check(CLI::Range(1, 256));
  command.add_option("--action-ms", each.action_ms, "Sleep of a device for F, I and W of a microbatch each")
      ->check(CLI::Range(0.1, 1e3));
  command.add_option("--gradient-bytes", each.gradient_bytes, "Of a device's stages together")
      ->check(CLI::Range(64, 1 << 30));
  command.add_option("--buckets", each.buckets, "Of a stage's gradients")->check(CLI::Range(1, 1024));
  command
      .add_option(
          "--transfers", each.transfers,
          "For how long a device's gradients are under way, over its work in a step, with commas between")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 100.0));
  command.add_option("--steps", each.steps, "Steps of each timing")->check(CLI::Range(2, 100000));
  command.add_option("--rounds", options->rounds, "Jobs of each schedule")->check(CLI::Range(1, 1000));
  command.add_flag("--json", options->json, "One JSON object for each schedule and link");
  command.callback([options] { run(*options); });
  add_worker(to, "overlap", [](const nlohmann::json& job) { work(job.get<overlap_job>()); });
}

}  // namespace troupe::bench
