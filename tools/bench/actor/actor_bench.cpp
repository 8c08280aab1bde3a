#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>

#include "bench/actor/probe_job.hpp"
#include "bench/benches.hpp"
#include "bench/measure/byte_sizes.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/ucx_perftest.hpp"
#include "bench/pipeline/synthetic_stage.hpp"
#include "bench/processes/bench_process.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::bench {
namespace {

struct actor_options {
  int ranks = 2;
  std::string bytes = "8:1M";
  int rounds = 5;
  std::string transports;
  int microbatches = 64;
  int steps = 200;
  std::string schedule = "1f1b";
  bool json = false;
};

/// A pipeline of synthetic stages, one a process.
struct hop_job {
  int microbatches = 1;
  std::uint64_t steps = 1;
  std::int64_t size_bytes = 4;
  std::string schedule = "1f1b";
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(hop_job, microbatches, steps, size_bytes, schedule)

/// Runs one of its processes. Rank 0 prints how long each step took there, where it begins and ends.
void run_hops(const hop_job& options) {
  auto self = start_launched_process();
  auto stages = self->world_size();
  device_record record{std::vector<device_step>(options.steps)};
  auto job = std::make_shared<actors::job::job_definition>();
  job->place(make_plan({schedule_kind_from(options.schedule), stages, options.microbatches, stages}), stages);
  job->snapshots.cadence.memory_every_steps = options.steps;
  job->make_program = [&](const layout::cell& computed) {
    return std::make_unique<synthetic_stage>(
        synthetic_stage_options{
            .stage = computed.stage, .num_stages = stages, .size_bytes = options.size_bytes},
        record);
  };
  train_steps(*self, job, options.steps);
  auto rank = self->rank();
  self.reset();
  if (rank != 0) return;
  std::vector<double> spans;
  for (const auto& step : record.steps)
    spans.push_back(1e-3 * static_cast<double>(step.last_end_ns - step.first_begin_ns));
  std::printf("%s\n", nlohmann::json{{"spans_us", spans}}.dump().c_str());
}

/// The first steps of a job make connections and warm up, and so do the first round trips.
constexpr std::size_t warm_up_steps = 5, warm_up_trips = 100;
/// Longer than any answer takes.
constexpr int polling_spin_us = 1'000'000;

/// As many messages as move 512 MiB, within limits.
std::int64_t messages_of(std::int64_t size_bytes, std::int64_t least, std::int64_t most) {
  return std::clamp((std::int64_t{1} << 29) / size_bytes, least, most);
}

/// Ours, and what ucx_perftest measured.
void add_compared(measurements& results, const std::string& name, double own,
                  const std::optional<ucx_perftest_result>& peer, double ucx_perftest_result::*figure) {
  results[name].push_back(own);
  if (!peer) return;
  results["ucx_perftest_" + name].push_back(*peer.*figure);
  results[name + "_over_ucx_perftest"].push_back(own / *peer.*figure);
}

/// One way between two probe actors.
struct probe_result {
  double median_us = 0, mean_us = 0, stream_GBps = 0;
};

/// Each probe polls for `spin_us` before it sleeps.
probe_result measure_probe(const actor_options& options, std::int64_t size_bytes, int spin_us) {
  probe_job job{.size_bytes = size_bytes,
                .round_trips = static_cast<std::uint64_t>(messages_of(size_bytes, 256, 5000)),
                .stream_messages = static_cast<std::uint64_t>(messages_of(size_bytes, 64, 20000)),
                .spin_us = spin_us,
                .transports = options.transports};
  auto seen = run_launched_for_object(worker_command("probe", job), 2);
  auto halves = seen.at("half_trips_us").get<std::vector<double>>();
  halves.erase(halves.begin(),
               halves.begin() + static_cast<std::ptrdiff_t>(std::min(halves.size() / 2, warm_up_trips)));
  auto sum = std::accumulate(halves.begin(), halves.end(), 0.0);
  return {median_of(halves), sum / static_cast<double>(halves.size()), seen.at("stream_GBps")};
}

/// How many hops follow one another in a step: the makespan of a plan in which only communication takes time.
double critical_hops(const actor_options& options, int microbatches) {
  auto plan = make_plan({schedule_kind_from(options.schedule), options.ranks, microbatches, options.ranks});
  return simulate(plan, {0, 0, 0, 1}).makespan;
}

/// Adds the time of each step over its critical hops.
void measure_hops(const actor_options& options, std::int64_t size_bytes, int microbatches,
                  std::vector<double>& hops_us) {
  auto steps = static_cast<std::size_t>((options.steps + options.rounds - 1) / options.rounds);
  hop_job job{microbatches, steps + warm_up_steps, size_bytes, options.schedule};
  auto seen = run_launched_for_object(worker_command("hop", job), options.ranks);
  auto spans = seen.at("spans_us").get<std::vector<double>>();
  for (std::size_t i = warm_up_steps; i < spans.size(); ++i)
    hops_us.push_back(spans[i] / critical_hops(options, microbatches));
}

void measure_round(const actor_options& options, std::int64_t size_bytes, measurements& results) {
  auto perftest = [&](const char* test, bool sleeps) {
    auto messages = messages_of(size_bytes, 256, sleeps ? 5000 : 50000);
    return run_ucx_perftest({test, sleeps, size_bytes, messages, options.transports});
  };
  using figures = ucx_perftest_result;
  auto polling = measure_probe(options, size_bytes, polling_spin_us);
  add_compared(results, "polling_us", polling.median_us, perftest("ucp_am_lat", false), &figures::median_us);
  add_compared(results, "stream_GBps", polling.stream_GBps, perftest("ucp_am_bw", false), &figures::GBps);
  auto sleeping = measure_probe(options, size_bytes, 0);
  add_compared(results, "sleeping_us", sleeping.mean_us, perftest("ucp_am_lat", true), &figures::mean_us);
  measure_hops(options, size_bytes, options.microbatches, results["hop_us"]);
  measure_hops(options, size_bytes, 1, results["single_hop_us"]);
}

void print(const actor_options& options, std::int64_t size_bytes, const measurements& results,
           report& output) {
  nlohmann::ordered_json line{{"ranks", options.ranks},
                              {"core_for_each_rank", output.where().cores >= options.ranks},
                              {"bytes", size_bytes},
                              {"schedule", options.schedule},
                              {"microbatches", options.microbatches},
                              {"critical_hops", critical_hops(options, options.microbatches)},
                              {"single_critical_hops", critical_hops(options, 1)}};
  for (const std::string name : {"polling_us", "sleeping_us", "stream_GBps"}) {
    line["ucx_perftest_" + name] = nullptr;
    line[name + "_over_ucx_perftest"] = nullptr;
  }
  add_spreads(results, line);
  output.add_block(line);
}

void run(const actor_options& options) {
  auto sizes = byte_sizes_from(options.bytes);
  if (schedule_kind_from(options.schedule) == schedule_kind::forward_only)
    throw bad_input("--schedule forward_only has no backward: gpipe or 1f1b");
  report output("actor", options.json);
  output.note("pipeline",
              options.schedule + ", " + std::to_string(options.ranks) + " empty stages, one a process");
  output.note_crowding(options.ranks);
  std::map<std::int64_t, measurements> results;
  for (int round = 0; round < options.rounds; ++round)
    for (auto size : sizes) measure_round(options, size, results[size]);
  for (const auto& [size, measured] : results) print(options, size, measured, output);
}

}  // namespace

void add_actor_bench(const bench_commands& to) {
  auto options = std::make_shared<actor_options>();
  auto& command = *to.bench.add_subcommand(
      "actor", "Time tensors between actors of two processes, and from stage to stage");
  command.add_option("--ranks", options->ranks, "Processes of the pipeline, one stage each")
      ->check(CLI::Range(2, 64));
  command.add_option("--bytes", options->bytes, "Sizes of the tensors: 8, 4K,1M or 8:1M");
  command.add_option("--rounds", options->rounds, "Everything is measured so often, in turn")
      ->check(CLI::Range(1, 1000));
  command.add_option("--transports", options->transports,
                     "UCX transports between the two actors; none: as in a job on one host");
  command.add_option("--microbatches", options->microbatches, "Microbatches of a step")
      ->check(CLI::Range(1, 65536));
  command.add_option("--steps", options->steps, "Steps for each size")->check(CLI::Range(1, 1000000));
  command.add_option("--schedule", options->schedule, "gpipe or 1f1b");
  command.add_flag("--json", options->json, "One JSON object per size");
  command.callback([options] { run(*options); });
  add_worker(to, "hop", [](const nlohmann::json& job) { run_hops(job.get<hop_job>()); });
  add_worker(to, "probe", [](const nlohmann::json& job) { run_probe(job.get<probe_job>()); });
}

}  // namespace troupe::bench
