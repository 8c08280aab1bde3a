#include <filesystem>
#include <map>

#include "bench/benches.hpp"
#include "bench/collective/collective_samples.hpp"
#include "bench/measure/arguments.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/mpirun.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/collective/diagnostics/profile.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

struct collective_options {
  collective_kind kind = collective_kind::all_reduce;
  std::string operation;
  int ranks = 4;
  std::string bytes = "8:64M";
  std::string backend = "ucx";
  int rounds = 3;
  int repeats = 5;
  bool fresh = false;
  bool json = false;
};

/// All that was measured of one operation.
struct collective_results {
  std::map<std::int64_t, std::vector<collective_sample>> samples;  ///< by size in bytes
  std::string no_gloo, no_open_mpi;                                ///< why not; empty: measured

  void add(const std::vector<nlohmann::json>& lines) {
    for (const auto& line : lines) {
      if (line.contains("no_gloo")) no_gloo = line.at("no_gloo");
      if (!line.contains("samples")) continue;
      for (const auto& each : line.at("samples"))
        samples[line.at("bytes")].push_back(each.get<collective_sample>());
    }
  }
};

enum class measured { group, gloo };

std::vector<std::string> rounds_command(const collective_options& options, measured what,
                                        const std::vector<std::int64_t>& sizes) {
  auto backend = what == measured::group ? options.backend : "ucx";
  nlohmann::json arguments{
      {"operation", options.operation}, {"backend", backend},         {"bytes", sizes},
      {"ranks", options.ranks},         {"repeats", options.repeats}, {"fresh", options.fresh},
      {"gloo", what == measured::gloo}};
  return {sibling_program("troupe_group_rounds"), arguments.dump()};
}

std::vector<nlohmann::json> run_group(const collective_options& options,
                                      const std::vector<std::int64_t>& sizes) {
  auto command = rounds_command(options, measured::group, sizes);
  if (options.backend != "mpi")
    return launched_job(command, options.backend == "local" ? 1 : options.ranks).run();
  if (auto why = why_missing("mpirun", "openmpi-bin"); !why.empty()) throw bad_input("--backend mpi: " + why);
  return run_by_mpirun(options.ranks, command);
}

std::vector<nlohmann::json> run_open_mpi(const collective_options& options,
                                         const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> command{sibling_program("troupe_mpi_rounds"), options.operation,
                                   std::to_string(options.repeats), options.fresh ? "fresh" : "repeat"};
  for (auto size : sizes) command.push_back(std::to_string(size));
  return run_by_mpirun(options.ranks, command);
}

std::string why_no_open_mpi() {
  if (!std::filesystem::exists(sibling_program("troupe_mpi_rounds")))
    return "this build found no MPI (Debian: libopenmpi-dev)";
  return why_missing("mpirun", "openmpi-bin");
}

collective_results measure(const collective_options& options, const std::vector<std::int64_t>& sizes) {
  collective_results results;
  results.no_open_mpi = why_no_open_mpi();
  for (int round = 0; round < options.rounds; ++round) {
    results.add(run_group(options, sizes));
    if (results.no_gloo.empty())
      results.add(launched_job(rounds_command(options, measured::gloo, sizes), options.ranks).run());
    if (results.no_open_mpi.empty()) results.add(run_open_mpi(options, sizes));
  }
  return results;
}

/// summary_of the samples, and the bus bandwidth as nccl-tests defines it, from the median.
nlohmann::ordered_json summary_with_bus(const collective_options& options, std::int64_t size_bytes,
                                        const std::vector<collective_sample>& samples) {
  if (samples.empty()) return nullptr;
  auto summary = summary_of(samples);
  summary["bus_GBps"] = nullptr;
  if (const auto& own = summary["own_us"]; !own.is_null())
    summary["bus_GBps"] = bus_factor(options.kind, options.ranks) * static_cast<double>(size_bytes) /
                          (1e3 * own.at("median").get<double>());
  return summary;
}

table columns() {
  constexpr int of_ratio = 18;
  return {{{"bytes", {"bytes"}, 10, 0},
           {"speed", {"speed"}},
           {"own us", {"own_us"}, of_spread},
           {"foreign us", {"foreign_us"}, of_spread},
           {"memcpy us", {"memcpy_us"}, of_spread},
           {"bus GB/s", {"bus_GBps"}},
           {"own/memcpy", {"own_over_memcpy"}, of_ratio},
           {"foreign/memcpy", {"foreign_over_memcpy"}, of_ratio},
           {"Gloo us", {"gloo_us"}, of_spread},
           {"Gloo/own", {"gloo_over_own"}},
           {"Open MPI us", {"open_mpi_us"}, of_spread},
           {"Open MPI/own", {"open_mpi_over_own"}}}};
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
  const auto& samples = results.samples.at(size);
  auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
  };
  nlohmann::ordered_json line{{"ranks", options.ranks},
                              {"core_for_each_rank", output.where().cores >= options.ranks},
                              {"backend", options.backend},
                              {"fresh", options.fresh},
                              {"bytes", size},
                              {"speed", "all"},
                              {"speeds", nullptr},
                              {"no_gloo", text_or_null(results.no_gloo)},
                              {"no_open_mpi", text_or_null(results.no_open_mpi)}};
  line.update(summary_with_bus(options, size, samples));
  if (threshold)
    line["speeds"] = {{"parted_at_us", *threshold},
                      {"fast", summary_with_bus(options, size, faster_than(*threshold, samples))},
                      {"slow", summary_with_bus(options, size, slower_than(*threshold, samples))}};
  output.add(columns(), line);
  for (const char* speed : {"fast", "slow"}) {
    if (!threshold || line["speeds"][speed].is_null()) continue;
    auto detail = line["speeds"][speed];
    detail.update({{"bytes", size}, {"speed", speed}});
    output.add_detail(columns(), detail);
  }
}

void run(const collective_options& options) {
  auto sizes = byte_sizes_from(options.bytes);
  if (options.operation == "p2p" && options.ranks != 2) throw bad_input("p2p is between --ranks 2");
  report output(options.operation, options.json);
  auto results = measure(options, sizes);
  output.note(options.operation, "over " + options.backend + ", " + std::to_string(options.ranks) + " ranks" +
                                     (options.fresh ? ", tensors rewritten before each call" : "") +
                                     crowding_text(output.where(), options.ranks));
  auto threshold = threshold_of(results);
  for (const auto& [size, samples] : results.samples) print_size(options, results, size, threshold, output);
  if (threshold)
    output.note("speeds", "the machine ran at two: a core read 256 KiB of another's in less, or more, than " +
                              number_text(*threshold, 1) + " us");
  if (!results.no_gloo.empty()) output.note("Gloo", "not measured: " + results.no_gloo);
  if (!results.no_open_mpi.empty()) output.note("Open MPI", "not measured: " + results.no_open_mpi);
}

void add_one(CLI::App& app, collective_kind kind, const char* operation, const char* about, int ranks) {
  auto options = std::make_shared<collective_options>();
  options->kind = kind;
  options->operation = operation;
  options->ranks = ranks;
  subcommand command(app, operation, about);
  command.add("--ranks", options->ranks, "Members of the group", between(2, 64));
  command.add("--bytes", options->bytes, "Sizes of the whole tensor: 8, 4K,1M or 8:256M");
  command.add("--backend", options->backend,
              "What carries the calls: ucx, local (threads), gloo, mpi or nccl",
              one_of({"ucx", "local", "gloo", "mpi", "nccl"}));
  command.add("--rounds", options->rounds, "Processes are started so often, in turn with the peers'",
              between(1, 1000));
  command.add("--repeats", options->repeats, "Measurements of each size in a round", between(1, 10000));
  command.add_flag("--fresh", options->fresh, "Owners rewrite their tensors before each call");
  command.add_flag("--json", options->json, "One JSON object per size");
  command.on_run([options] { run(*options); });
}

}  // namespace

void add_collective_benches(CLI::App& app) {
  using kind = collective_kind;
  add_one(app, kind::all_reduce, "all_reduce", "Time the sum of a tensor over all members", 4);
  add_one(app, kind::all_gather, "all_gather", "Time how members' parts come to all", 4);
  add_one(app, kind::reduce_scatter, "reduce_scatter", "Time how each member gets its part of the sum", 4);
  add_one(app, kind::send, "p2p", "Time how a tensor goes from one member to the other", 2);
}

}  // namespace troupe::bench
