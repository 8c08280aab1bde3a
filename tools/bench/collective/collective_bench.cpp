#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <map>

#include "bench/benches.hpp"
#include "bench/collective/collective_samples.hpp"
#include "bench/collective/rounds.hpp"
#include "bench/measure/byte_sizes.hpp"
#include "bench/measure/report.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/collective/diagnostics/profile.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

struct collective_options {
  collective::collective_kind kind = collective::collective_kind::all_reduce;
  rounds_options each;  ///< of a round; but for gloo
  std::string bytes = "8:64M";
  int rounds = 3;
  bool json = false;
};

/// All that was measured of one operation.
struct collective_results {
  std::map<std::int64_t, collective_samples> samples;  ///< key: size in bytes
  std::string no_gloo, no_open_mpi;                    ///< why not; empty: measured

  void add(const std::vector<nlohmann::json>& lines) {
    for (const auto& line : lines) {
      if (line.contains("no_gloo")) no_gloo = line.at("no_gloo");
      if (!line.contains("samples")) continue;
      for (const auto& each : line.at("samples"))
        samples[line.at("bytes")].push_back(each.get<collective_sample>());
    }
  }
};

std::vector<std::string> rounds_command(const char* program, const rounds_options& options) {
  return {sibling_program(program), nlohmann::json(options).dump()};
}

std::vector<nlohmann::json> run_group(const rounds_options& options) {
  auto command = rounds_command("troupe_group_rounds", options);
  if (options.backend == "mpi" && !TROUPE_HAS_MPI)
    throw bad_input("--backend mpi: this build has no MPI (Debian: libopenmpi-dev)");
  if (options.backend != "mpi") return run_launched(command, options.backend == "local" ? 1 : options.ranks);
  if (auto why = why_missing("mpirun", "openmpi-bin"); !why.empty()) throw bad_input("--backend mpi: " + why);
  return run_by_mpirun(command, options.ranks);
}

std::vector<nlohmann::json> run_gloo(rounds_options options) {
  options.backend = "ucx";
  options.gloo = true;
  return run_launched(rounds_command("troupe_group_rounds", options), options.ranks);
}

std::string why_no_open_mpi() {
  if (!std::filesystem::exists(sibling_program("troupe_mpi_rounds")))
    return "this build found no MPI (Debian: libopenmpi-dev)";
  return why_missing("mpirun", "openmpi-bin");
}

collective_results measure(rounds_options each, int rounds) {
  auto probe_file = make_memory_file(probe_bytes * static_cast<std::size_t>(each.ranks));
  each.probe_file = path_of(probe_file);
  collective_results results;
  results.no_open_mpi = why_no_open_mpi();
  for (int round = 0; round < rounds; ++round) {
    results.add(run_group(each));
    if (results.no_gloo.empty()) results.add(run_gloo(each));
    if (results.no_open_mpi.empty())
      results.add(run_by_mpirun(rounds_command("troupe_mpi_rounds", each), each.ranks));
  }
  return results;
}

/// summary_of the samples, and the bus bandwidth as nccl-tests defines it, from the median.
nlohmann::ordered_json summary_with_bus(const collective_options& options, std::int64_t size_bytes,
                                        const collective_samples& samples) {
  if (samples.empty()) return nullptr;
  auto summary = summary_of(samples);
  summary["bus_GBps"] = nullptr;
  if (const auto& own = summary["own_us"]; !own.is_null())
    summary["bus_GBps"] = bus_factor(options.kind, options.each.ranks) * static_cast<double>(size_bytes) /
                          (1e3 * own.at("median").get<double>());
  return summary;
}

/// Where the time of the probe parts the samples of all sizes into two speeds of the machine.
std::optional<double> threshold_of(const collective_results& results) {
  std::vector<double> probes;
  for (const auto& [size, samples] : results.samples)
    for (const auto& each : samples) probes.push_back(each.at("probe_us"));
  return speed_threshold(std::move(probes));
}

void print_size(const collective_options& options, const collective_results& results, std::int64_t size,
                std::optional<double> threshold, report& output) {
  const columns shown{{"bytes", 10}, {"speed"},         {"own_us"},          {"foreign_us"},
                      {"memcpy_us"}, {"bus_GBps"},      {"own_over_memcpy"}, {"foreign_over_memcpy"},
                      {"gloo_us"},   {"gloo_over_own"}, {"open_mpi_us"},     {"open_mpi_over_own"}};
  auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  const auto& samples = results.samples.at(size);
  nlohmann::ordered_json line{{"ranks", options.each.ranks},
                              {"core_for_each_rank", output.where().cores >= options.each.ranks},
                              {"backend", options.each.backend},
                              {"fresh", options.each.fresh},
                              {"bytes", size},
                              {"speed", "all"},
                              {"speeds", nullptr},
                              {"no_gloo", text_or_null(results.no_gloo)},
                              {"no_open_mpi", text_or_null(results.no_open_mpi)}};
  line.update(summary_with_bus(options, size, samples));
  if (!threshold) return output.add(shown, line);
  auto parted = part_at(*threshold, samples);
  line["speeds"] = {{"parted_at_us", *threshold},
                    {"fast", summary_with_bus(options, size, parted.fast)},
                    {"slow", summary_with_bus(options, size, parted.slow)}};
  output.add(shown, line);
  for (const char* speed : {"fast", "slow"}) {
    auto detail = line["speeds"][speed];
    if (detail.is_null()) continue;
    detail.update({{"bytes", size}, {"speed", speed}});
    output.add_detail(shown, detail);
  }
}

void run(collective_options options) {
  auto& each = options.each;
  each.bytes = byte_sizes_from(options.bytes);
  if (each.operation == "p2p" && each.ranks != 2) throw bad_input("p2p is between --ranks 2");
  report output(each.operation, options.json);
  auto results = measure(each, options.rounds);
  output.note(each.operation, "over " + each.backend + ", " + std::to_string(each.ranks) + " ranks" +
                                  (each.fresh ? ", tensors rewritten before each call" : ""));
  output.note_crowding(each.ranks);
  auto threshold = threshold_of(results);
  for (const auto& [size, samples] : results.samples) print_size(options, results, size, threshold, output);
  if (threshold)
    output.note("speeds", "the machine ran at two: a core read 256 KiB of another's in less, or more, than " +
                              std::to_string(std::lround(*threshold)) + " us");
  if (!results.no_gloo.empty()) output.note("Gloo", "not measured: " + results.no_gloo);
  if (!results.no_open_mpi.empty()) output.note("Open MPI", "not measured: " + results.no_open_mpi);
}

void add_one(const bench_commands& to, collective::collective_kind kind, const char* operation,
             const char* about, int ranks) {
  auto options = std::make_shared<collective_options>();
  options->kind = kind;
  auto& each = options->each;
  each.operation = operation;
  each.ranks = ranks;
  auto& command = *to.bench.add_subcommand(operation, about);
  command.add_option("--ranks", each.ranks, "Members of the group")->check(CLI::Range(2, 64));
  command.add_option("--bytes", options->bytes, "Sizes of the whole tensor: 8, 4K,1M or 8:256M");
  command
      .add_option("--backend", each.backend,
                  "What carries the calls: ucx, local (threads), gloo, mpi or nccl")
      ->check(CLI::IsMember({"ucx", "local", "gloo", "mpi", "nccl"}));
  command.add_option("--rounds", options->rounds, "Processes are started so often, in turn with the peers'")
      ->check(CLI::Range(1, 1000));
  command.add_option("--repeats", each.repeats, "Measurements of each size in a round")
      ->check(CLI::Range(1, 10000));
  command.add_flag("--fresh", each.fresh, "Owners rewrite their tensors before each call");
  command.add_flag("--json", options->json, "One JSON object per size");
  command.callback([options] { run(*options); });
}

}  // namespace

void add_collective_benches(const bench_commands& to) {
  using kind = collective::collective_kind;
  add_one(to, kind::all_reduce, "all_reduce", "Time the sum of a tensor over all members", 4);
  add_one(to, kind::all_gather, "all_gather", "Time how members' parts come to all", 4);
  add_one(to, kind::reduce_scatter, "reduce_scatter", "Time how each member gets its part of the sum", 4);
  add_one(to, kind::send, "p2p", "Time how a tensor goes from one member to the other", 2);
}

}  // namespace troupe::bench
