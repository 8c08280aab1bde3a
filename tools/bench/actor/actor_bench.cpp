#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>

#include "bench/benches.hpp"
#include "bench/measure/byte_sizes.hpp"
#include "bench/measure/machine.hpp"
#include "bench/measure/spread.hpp"
#include "bench/peers/ucx_peer.hpp"
#include "bench/processes/this_program.hpp"
#include "bench/processes/worker_job.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/simulate.hpp"

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

/// The first steps of a job make connections and warm up, and so do the first round trips.
constexpr std::size_t warm_up_steps = 5, warm_up_trips = 100;
/// Longer than any answer takes.
constexpr int polling_spin_us = 1'000'000;

/// What is compared with ucx_perftest: of each round.
struct compared {
  std::vector<double> ours, perftest, ratio;

  void add(double mine, std::optional<double> other) {
    ours.push_back(mine);
    if (!other) return;
    perftest.push_back(*other);
    ratio.push_back(mine / *other);
  }
};

/// Measurements for one size of tensor.
struct actor_results {
  compared polling_us, sleeping_us, stream_GBps;
  std::vector<double> step_hop_us;    ///< each step: its time over the hops on its critical path
  std::vector<double> single_hop_us;  ///< each step of one microbatch: its time over its 2(p-1) hops
};

nlohmann::json object_with(worker_job& job, const char* field) {
  for (auto& line : job.run())
    if (line.contains(field)) return std::move(line);
  throw std::runtime_error(std::string("the measured job printed no ") + field);
}

/// One way between two probe actors, each waiting for `spin_us` before it sleeps.
struct probed {
  double median_us = 0, mean_us = 0, stream_GBps = 0;
};

probed measure_probe(const actor_options& options, std::int64_t size_bytes, int spin_us) {
  auto stream = std::clamp<std::int64_t>((std::int64_t{1} << 29) / size_bytes, 64, 20000);
  auto trips = std::clamp<std::int64_t>((std::int64_t{1} << 29) / size_bytes, 256, 5000);
  worker_job job(
      {this_program(), "bench", "worker", "probe", "--bytes", std::to_string(size_bytes), "--round-trips",
       std::to_string(trips), "--stream", std::to_string(stream), "--window", std::to_string(8), "--spin-us",
       std::to_string(spin_us), "--transports", options.transports},
      2);
  auto seen = object_with(job, "half_trips_us");
  auto halves = seen.at("half_trips_us").get<std::vector<double>>();
  halves.erase(halves.begin(), halves.begin() + std::min(halves.size() / 2, warm_up_trips));
  double sum = 0;
  for (auto half : halves) sum += half;
  return {spread_of(halves).median, sum / static_cast<double>(halves.size()), seen.at("stream_GBps")};
}

std::optional<ucx_figures> measure_perftest(const actor_options& options, std::int64_t size_bytes,
                                            const char* test, bool sleeps) {
  if (!has_ucx_perftest()) return {};
  auto iterations =
      std::clamp<std::int64_t>((std::int64_t{1} << 29) / size_bytes, 256, sleeps ? 5000 : 50000);
  return run_ucx_perftest({test, sleeps, size_bytes, iterations, options.transports});
}

/// How many hops follow one another in a step: the time on paper of a plan where only communication takes
/// time.
double critical_hops(const actor_options& options, int microbatches) {
  auto planned =
      make_plan({schedule_kind_from(options.schedule), options.ranks, microbatches, options.ranks});
  return simulate(planned, {0, 0, 0, 1}).makespan;
}

/// Adds the time of each step over its critical hops.
void measure_hops(const actor_options& options, std::int64_t size_bytes, int microbatches,
                  std::vector<double>& hops_us) {
  auto steps = (options.steps + options.rounds - 1) / options.rounds;
  worker_job job({this_program(), "bench", "worker", "hop", "--microbatches", std::to_string(microbatches),
                  "--steps", std::to_string(steps + static_cast<int>(warm_up_steps)), "--bytes",
                  std::to_string(size_bytes), "--schedule", options.schedule},
                 options.ranks);
  auto spans = object_with(job, "spans_us").at("spans_us").get<std::vector<double>>();
  for (std::size_t i = warm_up_steps; i < spans.size(); ++i)
    hops_us.push_back(spans[i] / critical_hops(options, microbatches));
}

void measure_round(const actor_options& options, std::int64_t size_bytes, actor_results& results) {
  auto median_of = [](const auto& figures) {
    return figures ? std::optional(figures->median_us) : std::nullopt;
  };
  auto mean_of = [](const auto& figures) { return figures ? std::optional(figures->mean_us) : std::nullopt; };
  auto rate_of = [](const auto& figures) { return figures ? std::optional(figures->GBps) : std::nullopt; };
  auto polling = measure_probe(options, size_bytes, polling_spin_us);
  results.polling_us.add(polling.median_us,
                         median_of(measure_perftest(options, size_bytes, "ucp_am_lat", false)));
  results.stream_GBps.add(polling.stream_GBps,
                          rate_of(measure_perftest(options, size_bytes, "ucp_am_bw", false)));
  results.sleeping_us.add(measure_probe(options, size_bytes, 0).mean_us,
                          mean_of(measure_perftest(options, size_bytes, "ucp_am_lat", true)));
  measure_hops(options, size_bytes, options.microbatches, results.step_hop_us);
  measure_hops(options, size_bytes, 1, results.single_hop_us);
}

nlohmann::ordered_json or_null(const std::vector<double>& values) {
  return values.empty() ? nlohmann::ordered_json(nullptr) : to_json(spread_of(values));
}

void print_json(const actor_options& options, const machine& where, std::int64_t size_bytes,
                const actor_results& of) {
  nlohmann::ordered_json line{{"bench", "actor"},
                              {"machine", to_json(where)},
                              {"ranks", options.ranks},
                              {"core_for_each_rank", where.cores >= options.ranks},
                              {"bytes", size_bytes}};
  auto add = [&line](const std::string& what, const compared& one) {
    line[what] = to_json(spread_of(one.ours));
    line["ucx_perftest_" + what] = or_null(one.perftest);
    line[what + "_over_ucx_perftest"] = or_null(one.ratio);
  };
  add("polling_us", of.polling_us);
  add("sleeping_us", of.sleeping_us);
  add("stream_GBps", of.stream_GBps);
  line["schedule"] = options.schedule;
  line["microbatches"] = options.microbatches;
  line["critical_hops"] = critical_hops(options, options.microbatches);
  line["hop_us"] = to_json(spread_of(of.step_hop_us));
  line["single_critical_hops"] = critical_hops(options, 1);
  line["single_hop_us"] = to_json(spread_of(of.single_hop_us));
  std::cout << line.dump() << std::endl;
}

void print_table(const actor_options& options, std::int64_t size_bytes, const actor_results& of) {
  std::printf("\n%-44s %-24s %-24s %s\n", ("tensors of " + std::to_string(size_bytes) + " bytes").c_str(),
              "Troupe", "ucx_perftest", "ratio");
  auto row = [](const char* what, const compared& one) {
    auto text = [](const std::vector<double>& values) {
      return values.empty() ? std::string("not measured") : to_text(spread_of(values), 1, 2);
    };
    std::printf("  %-42s %-24s %-24s %s\n", what, text(one.ours).c_str(), text(one.perftest).c_str(),
                text(one.ratio).c_str());
  };
  row("actor to actor, polling, us", of.polling_us);
  row("actor to actor, sleeping, us", of.sleeping_us);
  row("a stream of them, GB/s", of.stream_GBps);
  char what[64];
  std::snprintf(what, sizeof what, "hop in a step of %d microbatches, us", options.microbatches);
  row(what, {of.step_hop_us, {}, {}});
  row("hop of one microbatch, us", {of.single_hop_us, {}, {}});
}

int run(const actor_options& options) {
  auto sizes = byte_sizes_from(options.bytes);
  if (schedule_kind_from(options.schedule) == schedule_kind::forward_only)
    throw bad_input("--schedule forward_only has no backward: gpipe or 1f1b");
  auto where = this_machine();
  std::map<std::int64_t, actor_results> results;
  for (int round = 0; round < options.rounds; ++round)
    for (auto size : sizes) measure_round(options, size, results[size]);
  if (!options.json)
    std::printf(
        "machine    %s\npipeline   %s, %d empty stages, one a process%s\n", to_text(where).c_str(),
        options.schedule.c_str(), options.ranks,
        where.cores >= options.ranks ? "" : ": MORE DEVICES THAN CORES, they wait for each other's turn");
  for (const auto& [size, measured] : results)
    options.json ? print_json(options, where, size, measured) : print_table(options, size, measured);
  return 0;
}

}  // namespace

void add_actor_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<actor_options>();
  auto* command =
      app.add_subcommand("actor", "Time tensors between actors of two processes, and from stage to stage");
  auto default_of = [](CLI::Option* option) { option->capture_default_str(); };
  default_of(command->add_option("--ranks", options->ranks, "Processes of the pipeline, one stage each")
                 ->check(CLI::Range(2, 64)));
  default_of(command->add_option("--bytes", options->bytes, "Sizes of the tensors: 8, 4K,1M or 8:1M"));
  default_of(command->add_option("--rounds", options->rounds, "Everything is measured so often, in turn")
                 ->check(CLI::Range(1, 1000)));
  command->add_option("--transports", options->transports,
                      "UCX transports between the two actors; none: as in a job on one host");
  default_of(command->add_option("--microbatches", options->microbatches, "Microbatches of a step")
                 ->check(CLI::Range(1, 65536)));
  default_of(
      command->add_option("--steps", options->steps, "Steps for each size")->check(CLI::Range(1, 1000000)));
  default_of(command->add_option("--schedule", options->schedule, "gpipe or 1f1b"));
  command->add_flag("--json", options->json, "One JSON object per size");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
