#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "bench/actor/actor_jobs.hpp"
#include "bench/benches.hpp"
#include "bench/measure/arguments.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/ucx_perftest.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
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

/// Of one size of tensor: of each round or step, by the names in the result.
using actor_results = std::map<std::string, std::vector<double>>;

/// As many messages as move 512 MiB, within limits.
std::int64_t messages_of(std::int64_t size_bytes, std::int64_t least, std::int64_t most) {
  return std::clamp((std::int64_t{1} << 29) / size_bytes, least, most);
}

/// Ours, and what ucx_perftest measured.
void add_compared(actor_results& results, const std::string& name, double own, std::optional<double> peer) {
  results[name].push_back(own);
  if (!peer) return;
  results["ucx_perftest_" + name].push_back(*peer);
  results[name + "_over_ucx_perftest"].push_back(own / *peer);
}

/// One way between two probe actors, each of which polls for `spin_us` before it sleeps.
struct probe_result {
  double median_us = 0, mean_us = 0, stream_GBps = 0;
};

probe_result measure_probe(const actor_options& options, std::int64_t size_bytes, int spin_us) {
  probe_job job{.size_bytes = size_bytes,
                .round_trips = static_cast<std::uint64_t>(messages_of(size_bytes, 256, 5000)),
                .stream_messages = static_cast<std::uint64_t>(messages_of(size_bytes, 64, 20000)),
                .spin_us = spin_us,
                .transports = options.transports};
  auto seen = launched_job(worker_command("probe", job), 2).run_for("half_trips_us");
  auto halves = seen.at("half_trips_us").get<std::vector<double>>();
  halves.erase(halves.begin(),
               halves.begin() + static_cast<std::ptrdiff_t>(std::min(halves.size() / 2, warm_up_trips)));
  auto sum = std::accumulate(halves.begin(), halves.end(), 0.0);
  return {spread_of(halves).median, sum / static_cast<double>(halves.size()), seen.at("stream_GBps")};
}

enum class waiting { polling, sleeping };

std::optional<double> measure_perftest(const actor_options& options, std::int64_t size_bytes,
                                       const char* test, waiting how, double ucx_perftest_result::*figure) {
  auto sleeps = how == waiting::sleeping;
  auto result = run_ucx_perftest(
      {test, sleeps, size_bytes, messages_of(size_bytes, 256, sleeps ? 5000 : 50000), options.transports});
  return result ? std::optional(*result.*figure) : std::nullopt;
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
  auto seen = launched_job(worker_command("hop", job), options.ranks).run_for("spans_us");
  auto spans = seen.at("spans_us").get<std::vector<double>>();
  for (std::size_t i = warm_up_steps; i < spans.size(); ++i)
    hops_us.push_back(spans[i] / critical_hops(options, microbatches));
}

void measure_round(const actor_options& options, std::int64_t size_bytes, actor_results& results) {
  auto perftest = [&](const char* test, waiting how, double ucx_perftest_result::*figure) {
    return measure_perftest(options, size_bytes, test, how, figure);
  };
  using figures = ucx_perftest_result;
  auto polling = measure_probe(options, size_bytes, polling_spin_us);
  add_compared(results, "polling_us", polling.median_us,
               perftest("ucp_am_lat", waiting::polling, &figures::median_us));
  add_compared(results, "stream_GBps", polling.stream_GBps,
               perftest("ucp_am_bw", waiting::polling, &figures::GBps));
  auto sleeping = measure_probe(options, size_bytes, 0);
  add_compared(results, "sleeping_us", sleeping.mean_us,
               perftest("ucp_am_lat", waiting::sleeping, &figures::mean_us));
  measure_hops(options, size_bytes, options.microbatches, results["hop_us"]);
  measure_hops(options, size_bytes, 1, results["single_hop_us"]);
}

table blocks() {
  table shown{{{"tensors, bytes", {"bytes"}, 0, 0}}, table_layout::blocks};
  for (auto [name, heading] : {std::pair{"polling_us", "actor to actor, polling, us"},
                               {"sleeping_us", "actor to actor, sleeping, us"},
                               {"stream_GBps", "a stream of them, GB/s"}}) {
    shown.columns.push_back({heading, {name}});
    shown.columns.push_back({"  ucx_perftest", {std::string("ucx_perftest_") + name}});
    shown.columns.push_back({"  ratio", {std::string(name) + "_over_ucx_perftest"}});
  }
  shown.columns.push_back({"microbatches of a step", {"microbatches"}, 0, 0});
  shown.columns.push_back({"hop in such a step, us", {"hop_us"}});
  shown.columns.push_back({"hop of one microbatch, us", {"single_hop_us"}});
  return shown;
}

void print(const actor_options& options, std::int64_t size_bytes, const actor_results& results,
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
  for (const auto& [name, values] : results) line[name] = spread_json(values);
  output.add(blocks(), line);
}

void run(const actor_options& options) {
  auto sizes = byte_sizes_from(options.bytes);
  if (schedule_kind_from(options.schedule) == schedule_kind::forward_only)
    throw bad_input("--schedule forward_only has no backward: gpipe or 1f1b");
  report output("actor", options.json);
  output.note("pipeline", options.schedule + ", " + std::to_string(options.ranks) +
                              " empty stages, one a process" + crowding_text(output.where(), options.ranks));
  std::map<std::int64_t, actor_results> results;
  for (int round = 0; round < options.rounds; ++round)
    for (auto size : sizes) measure_round(options, size, results[size]);
  for (const auto& [size, measured] : results) print(options, size, measured, output);
}

}  // namespace

void add_actor_bench(CLI::App& app) {
  auto options = std::make_shared<actor_options>();
  subcommand command(app, "actor", "Time tensors between actors of two processes, and from stage to stage");
  command.add("--ranks", options->ranks, "Processes of the pipeline, one stage each", between(2, 64));
  command.add("--bytes", options->bytes, "Sizes of the tensors: 8, 4K,1M or 8:1M");
  command.add("--rounds", options->rounds, "Everything is measured so often, in turn", between(1, 1000));
  command.add("--transports", options->transports,
              "UCX transports between the two actors; none: as in a job on one host");
  command.add("--microbatches", options->microbatches, "Microbatches of a step", between(1, 65536));
  command.add("--steps", options->steps, "Steps for each size", between(1, 1000000));
  command.add("--schedule", options->schedule, "gpipe or 1f1b");
  command.add_flag("--json", options->json, "One JSON object per size");
  command.on_run([options] { run(*options); });
}

}  // namespace troupe::bench
