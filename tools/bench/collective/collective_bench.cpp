#include <filesystem>

#include "bench/benches.hpp"
#include "bench/collective/collective_report.hpp"
#include "bench/measure/byte_sizes.hpp"
#include "bench/peers/mpirun.hpp"
#include "bench/processes/this_program.hpp"
#include "bench/processes/worker_job.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

struct collective_options {
  std::string operation;
  int ranks = 4;
  std::string bytes = "8:64M";
  std::string backend = "ucx";
  int rounds = 3;
  int repeats = 5;
  bool fresh = false;
  bool json = false;
};

/// A program that stands beside this one, and measures.
std::filesystem::path beside(const char* name) {
  return std::filesystem::path(this_program()).parent_path() / name;
}

std::string joined(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (auto size : sizes) text += (text.empty() ? "" : ",") + std::to_string(size);
  return text;
}

void collect(const std::vector<nlohmann::json>& lines, collective_report& report) {
  for (const auto& line : lines) {
    if (line.contains("no_gloo")) report.no_gloo = line.at("no_gloo");
    if (!line.contains("samples")) continue;
    for (const auto& each : line.at("samples"))
      report.samples[line.at("bytes")].push_back(collective_sample::from(each));
  }
}

std::vector<std::string> rounds_command(const collective_options& options, const std::string& backend,
                                        const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> command{beside("troupe_group_rounds"),
                                   "--operation",
                                   options.operation,
                                   "--backend",
                                   backend,
                                   "--bytes",
                                   joined(sizes),
                                   "--threads",
                                   std::to_string(options.ranks),
                                   "--repeats",
                                   std::to_string(options.repeats)};
  if (options.fresh) command.emplace_back("--fresh");
  return command;
}

std::vector<nlohmann::json> run_ours(const collective_options& options,
                                     const std::vector<std::int64_t>& sizes) {
  auto command = rounds_command(options, options.backend, sizes);
  if (options.backend != "mpi")
    return worker_job(command, options.backend == "local" ? 1 : options.ranks).run();
  if (auto why = why_no_mpirun()) throw bad_input("--backend mpi: " + *why);
  return run_by_mpirun(options.ranks, command);
}

/// The same with gloo itself.
std::vector<nlohmann::json> run_gloo(const collective_options& options,
                                     const std::vector<std::int64_t>& sizes) {
  auto command = rounds_command(options, "ucx", sizes);
  command.emplace_back("--gloo");
  return worker_job(command, options.ranks).run();
}

/// The same with bare MPI, which is not measured where it is missing.
std::vector<nlohmann::json> run_open_mpi(const collective_options& options,
                                         const std::vector<std::int64_t>& sizes) {
  std::vector<std::string> command{beside("troupe_mpi_rounds"), options.operation,
                                   std::to_string(options.repeats), options.fresh ? "fresh" : "repeat"};
  for (auto size : sizes) command.push_back(std::to_string(size));
  return run_by_mpirun(options.ranks, command);
}

std::string why_no_open_mpi() {
  if (!std::filesystem::exists(beside("troupe_mpi_rounds")))
    return "this build found no MPI (Debian: libopenmpi-dev)";
  return why_no_mpirun().value_or("");
}

int run(const collective_options& options) {
  auto sizes = byte_sizes_from(options.bytes);
  if (options.operation == "p2p" && options.ranks != 2) throw bad_input("p2p is between --ranks 2");
  collective_report report{
      this_machine(),   {options.operation, options.backend, options.ranks, 0}, options.fresh, {}, {},
      why_no_open_mpi()};
  report.group.cores = report.where.cores;
  for (int round = 0; round < options.rounds; ++round) {
    collect(run_ours(options, sizes), report);
    if (report.no_gloo.empty()) collect(run_gloo(options, sizes), report);
    if (report.no_open_mpi.empty()) collect(run_open_mpi(options, sizes), report);
  }
  options.json ? report.print_json() : report.print_table();
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
  default_of(command
                 ->add_option("--backend", options->backend,
                              "What carries the calls: ucx, local (threads), gloo, mpi or nccl")
                 ->check(CLI::IsMember({"ucx", "local", "gloo", "mpi", "nccl"})));
  default_of(
      command
          ->add_option("--rounds", options->rounds, "Processes are started so often, in turn with the peers'")
          ->check(CLI::Range(1, 1000)));
  default_of(command->add_option("--repeats", options->repeats, "Measurements of each size in a round")
                 ->check(CLI::Range(1, 10000)));
  command->add_flag("--fresh", options->fresh, "Owners rewrite their tensors before each call");
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
