#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>

#include "benches.hpp"
#include "byte_sizes.hpp"
#include "machine.hpp"
#include "mpi_peer.hpp"
#include "spread.hpp"
#include "this_program.hpp"
#include "troupe/error/errors.hpp"
#include "worker_job.hpp"

namespace troupe::bench {
namespace {

struct collective_options {
  std::string operation;
  int ranks = 4;
  std::string bytes = "8:64M";
  std::string backend = "ucx";
  int rounds = 3;
  int repeats = 5;
  bool json = false;
};

/// Measurements for one size; `us` everywhere.
struct collective_results {
  std::vector<double> floor, own, foreign, open_mpi;
  std::vector<double> own_over_floor, foreign_over_floor;  ///< of measurements made one after the other
  std::vector<double> open_mpi_over_own;                   ///< of a round's medians
};

using results_by_size = std::map<std::int64_t, collective_results>;

void append(std::vector<double>& to, const std::vector<double>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

void append_ratios(std::vector<double>& to, const std::vector<double>& above,
                   const std::vector<double>& below) {
  for (std::size_t i = 0; i < above.size(); ++i) to.push_back(above[i] / std::max(below[i], 1e-3));
}

std::string joined(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (auto size : sizes) text += (text.empty() ? "" : ",") + std::to_string(size);
  return text;
}

void measure_round(const collective_options& options, const std::vector<std::int64_t>& sizes, bool crowded,
                   results_by_size& results) {
  bool is_local = options.backend == "local";
  worker_job job({this_program(), "bench", "worker", "collective", "--operation", options.operation,
                  "--backend", options.backend, "--bytes", joined(sizes), "--threads",
                  std::to_string(options.ranks), "--repeats", std::to_string(options.repeats)},
                 is_local ? 1 : options.ranks);
  std::map<std::int64_t, double> own_medians;
  for (const auto& line : job.run()) {
    if (!line.contains("own_us")) continue;
    auto& of = results[line.at("bytes")];
    auto floor = line.at("floor_us").get<std::vector<double>>();
    auto own = line.at("own_us").get<std::vector<double>>();
    auto foreign = line.at("foreign_us").get<std::vector<double>>();
    append(of.floor, floor);
    append(of.own, own);
    append(of.foreign, foreign);
    append_ratios(of.own_over_floor, own, floor);
    append_ratios(of.foreign_over_floor, foreign, floor);
    own_medians[line.at("bytes")] = spread_of(own).median;
  }
  auto peer = open_mpi_times(options.operation, options.ranks, crowded, sizes, options.repeats);
  if (!peer) return;
  for (const auto& [size, times] : *peer) {
    append(results[size].open_mpi, times);
    results[size].open_mpi_over_own.push_back(spread_of(times).median / own_medians.at(size));
  }
}

/// GB/s as nccl-tests defines it, from the median time.
double bus_bandwidth(const collective_options& options, std::int64_t size_bytes, double us) {
  double n = options.ranks;
  double factor = options.operation == "all_reduce" ? 2 * (n - 1) / n
                  : options.operation == "p2p"      ? 1
                                                    : (n - 1) / n;
  return factor * static_cast<double>(size_bytes) / (1e3 * us);
}

void print_json(const collective_options& options, const machine& where, std::int64_t size_bytes,
                const collective_results& of) {
  auto or_null = [](const std::vector<double>& values) {
    return values.empty() ? nlohmann::ordered_json(nullptr) : to_json(spread_of(values));
  };
  nlohmann::ordered_json line{{"bench", options.operation},
                              {"machine", to_json(where)},
                              {"ranks", options.ranks},
                              {"core_for_each_rank", where.cores >= options.ranks},
                              {"backend", options.backend},
                              {"bytes", size_bytes},
                              {"bus_GBps", bus_bandwidth(options, size_bytes, spread_of(of.own).median)},
                              {"own_us", to_json(spread_of(of.own))},
                              {"foreign_us", to_json(spread_of(of.foreign))},
                              {"memcpy_us", to_json(spread_of(of.floor))},
                              {"own_over_memcpy", to_json(spread_of(of.own_over_floor))},
                              {"foreign_over_memcpy", to_json(spread_of(of.foreign_over_floor))},
                              {"open_mpi_us", or_null(of.open_mpi)},
                              {"open_mpi_over_own", or_null(of.open_mpi_over_own)}};
  std::cout << line.dump() << std::endl;
}

void print_table(const collective_options& options, const results_by_size& results) {
  std::printf("%-12s %-26s %-26s %-26s %-8s %-18s %-18s %-26s %s\n", "bytes", "own us", "foreign us",
              "memcpy us", "bus GB/s", "own/memcpy", "foreign/memcpy", "Open MPI us", "Open MPI/own");
  for (const auto& [size, of] : results)
    std::printf("%-12lld %-26s %-26s %-26s %-8.2f %-18s %-18s %-26s %s\n", static_cast<long long>(size),
                to_text(spread_of(of.own), 1, 2).c_str(), to_text(spread_of(of.foreign), 1, 2).c_str(),
                to_text(spread_of(of.floor), 1, 2).c_str(),
                bus_bandwidth(options, size, spread_of(of.own).median),
                to_text(spread_of(of.own_over_floor), 1, 2).c_str(),
                to_text(spread_of(of.foreign_over_floor), 1, 2).c_str(),
                of.open_mpi.empty() ? "not measured" : to_text(spread_of(of.open_mpi), 1, 2).c_str(),
                of.open_mpi.empty() ? "" : to_text(spread_of(of.open_mpi_over_own), 1, 2).c_str());
}

int run(const collective_options& options) {
  auto sizes = byte_sizes_from(options.bytes);
  if (options.operation == "p2p" && options.ranks != 2) throw bad_input("p2p is between --ranks 2");
  auto where = this_machine();
  bool crowded = where.cores < options.ranks;
  results_by_size results;
  for (int round = 0; round < options.rounds; ++round) measure_round(options, sizes, crowded, results);
  if (options.json) {
    for (const auto& [size, of] : results) print_json(options, where, size, of);
    return 0;
  }
  std::printf("machine    %s\n%s over %s, %d ranks%s\n", to_text(where).c_str(), options.operation.c_str(),
              options.backend.c_str(), options.ranks,
              crowded ? ": MORE RANKS THAN CORES, they wait for each other's turn" : "");
  print_table(options, results);
  return 0;
}

void add_one(CLI::App& app, int& exit_code, const char* operation, const char* about, int ranks) {
  auto options = std::make_shared<collective_options>();
  options->operation = operation;
  options->ranks = ranks;
  auto* command = app.add_subcommand(operation, about);
  auto default_of = [](CLI::Option* option) { option->capture_default_str(); };
  default_of(
      command->add_option("--ranks", options->ranks, "Members of the group")->check(CLI::Range(2, 64)));
  default_of(command->add_option("--bytes", options->bytes, "Sizes of the whole tensor: 8, 4K,1M or 8:256M"));
  default_of(command->add_option("--backend", options->backend, "What carries the calls; local: threads"));
  default_of(
      command
          ->add_option("--rounds", options->rounds, "Processes are started so often, in turn with Open MPI's")
          ->check(CLI::Range(1, 1000)));
  default_of(command->add_option("--repeats", options->repeats, "Measurements of each size in a round")
                 ->check(CLI::Range(1, 10000)));
  command->add_flag("--json", options->json, "One JSON object per size");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace

void add_collective_benches(CLI::App& app, int& exit_code) {
  add_one(app, exit_code, "all_reduce", "Time the sum of a tensor over all members", 4);
  add_one(app, exit_code, "all_gather", "Time how members' parts come to all", 4);
  add_one(app, exit_code, "reduce_scatter", "Time how each member gets its part of the sum", 4);
  add_one(app, exit_code, "p2p", "Time how a tensor goes from one member to the other", 2);
}

}  // namespace troupe::bench
