#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>

#include "benches.hpp"
#include "machine.hpp"
#include "spread.hpp"
#include "this_program.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/simulate.hpp"
#include "ucx_peer.hpp"
#include "worker_job.hpp"

namespace troupe::bench {
namespace {

struct hop_options {
  int num_processes = 4;
  int microbatches = 64;
  int steps = 200;
  int rounds = 4;
  std::vector<std::int64_t> sizes_bytes = {4, 1024, 102400};
  std::string schedule = "1f1b";
  bool json = false;
};

/// The first steps of a job make connections and warm up.
constexpr std::size_t warm_up_steps = 5;
constexpr int round_trips = 1000;

/// Measurements for one size of tensor; `us` everywhere.
struct hop_results {
  std::vector<double> step_hop;      ///< each step: its time over the hops on its critical path
  std::vector<double> step_message;  ///< each step: its time over all messages in it
  std::vector<double> single_hop;    ///< each step of one microbatch: its time over its 2(p-1) hops
  std::vector<double> ping;          ///< each half round trip of the bare transport
  std::vector<double> perftest;      ///< each round: the median
  // Of each round: medians divided by one another.
  std::vector<double> step_over_ping, single_over_ping, ping_over_perftest;
};

/// How many hops follow one another in a step: the time on paper of a plan where only communication takes
/// time.
double critical_hops(const hop_options& options, int microbatches) {
  auto planned = make_plan(
      {schedule_kind_from(options.schedule), options.num_processes, microbatches, options.num_processes});
  return simulate(planned, {0, 0, 0, 1}).makespan;
}

std::vector<double> numbers_of(worker_job& job, const char* field) {
  for (const auto& line : job.run())
    if (line.contains(field)) return line.at(field).get<std::vector<double>>();
  throw std::runtime_error(std::string("the measured job printed no ") + field);
}

std::vector<double> measure_steps(const hop_options& options, int microbatches, int steps,
                                  std::int64_t size_bytes) {
  worker_job job({this_program(), "bench", "worker", "hop", "--microbatches", std::to_string(microbatches),
                  "--steps", std::to_string(steps + static_cast<int>(warm_up_steps)), "--bytes",
                  std::to_string(size_bytes), "--schedule", options.schedule},
                 options.num_processes);
  auto spans = numbers_of(job, "spans_us");
  spans.erase(spans.begin(),
              spans.begin() + static_cast<std::ptrdiff_t>(std::min(spans.size(), warm_up_steps)));
  return spans;
}

std::vector<double> measure_ping(std::int64_t size_bytes) {
  worker_job job({this_program(), "bench", "worker", "ping", "--bytes", std::to_string(size_bytes),
                  "--round-trips", std::to_string(round_trips)},
                 2);
  return numbers_of(job, "half_trips_us");
}

/// Divides all by `divisor`, adds them to `to`, and returns their median.
double add(std::vector<double>& to, std::vector<double> values, double divisor) {
  for (auto& value : values) value /= divisor;
  to.insert(to.end(), values.begin(), values.end());
  return spread_of(values).median;
}

void measure_round(const hop_options& options, std::int64_t size_bytes, hop_results& results) {
  auto steps = (options.steps + options.rounds - 1) / options.rounds;
  auto hops = critical_hops(options, options.microbatches);
  auto spans = measure_steps(options, options.microbatches, steps, size_bytes);
  add(results.step_message, spans, 2.0 * options.microbatches * (options.num_processes - 1));
  auto step_hop = add(results.step_hop, spans, hops);
  auto ping = add(results.ping, measure_ping(size_bytes), 1);
  auto single_hop =
      add(results.single_hop, measure_steps(options, 1, steps, size_bytes), critical_hops(options, 1));
  results.step_over_ping.push_back(step_hop / ping);
  results.single_over_ping.push_back(single_hop / ping);
  if (!has_ucx_perftest()) return;
  if (auto perftest = ucx_latency_us(size_bytes, 2 * round_trips)) {
    results.perftest.push_back(*perftest);
    results.ping_over_perftest.push_back(ping / *perftest);
  }
}

void print_json(const hop_options& options, const machine& where, std::int64_t size_bytes,
                const hop_results& results) {
  auto or_null = [](const std::vector<double>& values) {
    return values.empty() ? nlohmann::ordered_json(nullptr) : to_json(spread_of(values));
  };
  nlohmann::ordered_json line{{"bench", "hop"},
                              {"machine", to_json(where)},
                              {"devices", options.num_processes},
                              {"core_for_each_device", where.cores >= options.num_processes},
                              {"schedule", options.schedule},
                              {"microbatches", options.microbatches},
                              {"bytes", size_bytes},
                              {"critical_hops", critical_hops(options, options.microbatches)},
                              {"hop_us", to_json(spread_of(results.step_hop))},
                              {"message_us", to_json(spread_of(results.step_message))},
                              {"single_critical_hops", critical_hops(options, 1)},
                              {"single_hop_us", to_json(spread_of(results.single_hop))},
                              {"ping_us", to_json(spread_of(results.ping))},
                              {"ucx_perftest_us", or_null(results.perftest)},
                              {"hop_over_ping", to_json(spread_of(results.step_over_ping))},
                              {"single_hop_over_ping", to_json(spread_of(results.single_over_ping))},
                              {"ping_over_ucx_perftest", or_null(results.ping_over_perftest)}};
  std::cout << line.dump() << std::endl;
}

void print_row(const char* what, const std::vector<double>& values, const char* unit, int digits) {
  auto of = spread_of(values);
  std::printf("  %-58s %9.*f %9.*f %9.*f %9.*f %9.*f  %s\n", what, digits, of.median, digits,
              of.lower_quartile, digits, of.upper_quartile, digits, of.smallest, digits, of.largest, unit);
}

void print_table(const hop_options& options, std::int64_t size_bytes, const hop_results& results) {
  char what[128];
  std::printf("\n%-60s %9s %9s %9s %9s %9s\n",
              ("tensors of " + std::to_string(size_bytes) + " bytes").c_str(), "median", "p25", "p75", "min",
              "max");
  std::snprintf(what, sizeof what, "step of %d microbatches / its %.0f hops one after another",
                options.microbatches, critical_hops(options, options.microbatches));
  print_row(what, results.step_hop, "us", 1);
  std::snprintf(what, sizeof what, "the same step / its %d messages",
                2 * options.microbatches * (options.num_processes - 1));
  print_row(what, results.step_message, "us", 1);
  std::snprintf(what, sizeof what, "step of 1 microbatch / its %.0f hops", critical_hops(options, 1));
  print_row(what, results.single_hop, "us", 1);
  print_row("bare transport, half a round trip", results.ping, "us", 1);
  if (results.perftest.empty())
    std::printf("  ucx_perftest was not measured (Debian: apt-get install ucx-utils)\n");
  else
    print_row("ucx_perftest ucp_am_lat, sleeping, medians of rounds", results.perftest, "us", 1);
  print_row("hop in a step / bare transport, by round", results.step_over_ping, "x", 2);
  print_row("hop of 1 microbatch / bare transport, by round", results.single_over_ping, "x", 2);
  if (!results.perftest.empty())
    print_row("bare transport / ucx_perftest, by round", results.ping_over_perftest, "x", 2);
}

int run(hop_options options) {
  for (auto size : options.sizes_bytes)
    if (size < 1 || size > (std::int64_t{1} << 30))
      throw bad_input("--bytes " + std::to_string(size) + ": expected 1 to 2^30");
  if (schedule_kind_from(options.schedule) == schedule_kind::forward_only)
    throw bad_input("--schedule forward_only has no backward: gpipe or 1f1b");
  options.rounds = std::min(options.rounds, options.steps);
  auto where = this_machine();
  std::map<std::int64_t, hop_results> results;
  for (int round = 0; round < options.rounds; ++round)
    for (auto size : options.sizes_bytes) measure_round(options, size, results[size]);
  if (!options.json)
    std::printf("machine    %s\npipeline   %s, %d empty stages, one a process%s\n", to_text(where).c_str(),
                options.schedule.c_str(), options.num_processes,
                where.cores >= options.num_processes
                    ? ""
                    : ": MORE DEVICES THAN CORES, they wait for each other's turn");
  for (const auto& [size, measured] : results)
    options.json ? print_json(options, where, size, measured) : print_table(options, size, measured);
  return 0;
}

}  // namespace

void add_hop_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<hop_options>();
  auto* command = app.add_subcommand("hop", "Time how long a tensor takes from one stage to the next");
  auto default_of = [](CLI::Option* option) { option->capture_default_str(); };
  default_of(command->add_option("--nproc", options->num_processes, "Processes, one stage each")
                 ->check(CLI::Range(2, 64)));
  default_of(command->add_option("--microbatches", options->microbatches, "Microbatches of a step")
                 ->check(CLI::Range(1, 65536)));
  default_of(
      command->add_option("--steps", options->steps, "Steps for each size")->check(CLI::Range(1, 1000000)));
  default_of(command
                 ->add_option("--rounds", options->rounds,
                              "Into so many parts the steps go, with what they are compared with in turn")
                 ->check(CLI::Range(1, 1000)));
  default_of(command->add_option("--bytes", options->sizes_bytes, "Sizes of the tensors, with commas between")
                 ->delimiter(','));
  default_of(command->add_option("--schedule", options->schedule, "gpipe or 1f1b"));
  command->add_flag("--json", options->json, "One JSON object per size");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
