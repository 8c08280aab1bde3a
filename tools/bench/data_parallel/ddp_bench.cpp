// troupe bench ddp: starts jobs whose processes train with DataParallel, and holds their steps to one without
// communication, to those of a pipeline's replicas, and to those of FullyShardedDataParallel.
#include <sched.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <map>

#include "bench/benches.hpp"
#include "bench/data_parallel/ddp_measurement.hpp"
#include "bench/measure/report.hpp"
#include "bench/measure/spread.hpp"
#include "bench/peers/torch.hpp"
#include "bench/processes/bench_process.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/ops/threads.hpp"

namespace troupe::bench {
namespace {

/// Gives each rank cores of its own, as on hosts of their own: otherwise ranks that wake at the same moment
/// may share a core for a while beside an idle one. Does nothing where there are fewer cores than threads.
void pin_to_own_cores(int rank, int num_ranks, int threads_of_each) {
  cpu_set_t allowed, own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (CPU_COUNT(&allowed) < num_ranks * threads_of_each) return;
  for (int core = 0, number = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    if (number++ / threads_of_each == rank) CPU_SET(core, &own);
  }
  ::sched_setaffinity(0, sizeof own, &own);
}

void train(const ddp_job& job) {
  // Before the process's threads begin, which stay on the same cores.
  if (auto launched = read_launch_environment(process_environment()))
    pin_to_own_cores(launched->rank, launched->world_size, job.threads);
  auto link = std::make_shared<emulated_link>();
  auto self = start_launched_process(link);
  set_num_threads(job.threads);
  auto line = measure_ddp(job, *self, link);
  if (self->rank() == 0) std::printf("%s\n", line.dump().c_str());
}

struct ddp_options {
  std::vector<std::string> models = {"mlp", "gpt"};
  std::vector<int> ranks = {2, 4};
  ddp_job each;  ///< but for the model and the ranks
  int rounds = 5;
  std::filesystem::path torch;
  std::filesystem::path torch_script = "tools/bench/torch_compute.py";
  bool json = false;
};

struct ddp_results {
  std::string rate;  ///< tokens_per_s or samples_per_s
  measurements steps;
  std::map<double, measurements> links;  ///< key: time of communication over that of computing
};

/// Adds every number of what a process printed.
void add_numbers(const nlohmann::json& printed, measurements& results) {
  for (const auto& [name, value] : printed.items())
    if (value.is_number()) results[name].push_back(value);
}

/// DistributedDataParallel's, or FSDP2's.
double rate_of_torch(const ddp_job& job, const ddp_options& options, const std::string& rate, bool has_fsdp) {
  nlohmann::json given{{"model", job.model},
                       {"ranks", job.ranks},
                       {"threads", job.threads},
                       {"batch", job.batch},
                       {"seconds", job.seconds}};
  if (has_fsdp) given["sharding"] = "fsdp";
  return run_torch(options.torch, options.torch_script, given).at(rate);
}

void measure_round(const ddp_job& job, const ddp_options& options, ddp_results& results) {
  auto own = run_launched_for_object(passively_waiting(worker_command("ddp", job)), job.ranks);
  add_numbers(own, results.steps);
  for (const auto& link : own.value("links", nlohmann::json::array()))
    add_numbers(link, results.links[link.at("communication_over_compute")]);
  results.rate = own.contains("tokens_per_s") ? "tokens_per_s" : "samples_per_s";
  if (options.torch.empty()) return;
  auto torch_rate = rate_of_torch(job, options, results.rate, false);
  results.steps["torch_" + results.rate].push_back(torch_rate);
  results.steps["over_torch"].push_back(own.at(results.rate).get<double>() / torch_rate);
  if (job.replicas)
    results.steps["replicas_over_torch"].push_back(own.at("replicas_" + results.rate).get<double>() /
                                                   torch_rate);
  if (job.shard != "full" && !job.fsdp) return;
  auto fsdp_rate = rate_of_torch(job, options, results.rate, true);
  results.steps["fsdp_" + results.rate].push_back(fsdp_rate);
  results.steps["fsdp_over_torch"].push_back(fsdp_rate / torch_rate);
  for (std::string kind : {"replicas", "sharded"})
    if (kind == "replicas" ? job.shard == "full" : job.fsdp)
      results.steps[kind + "_over_fsdp"].push_back(own.at(kind + "_" + results.rate).get<double>() /
                                                   fsdp_rate);
}

void print(const ddp_job& job, const ddp_results& results, report& output) {
  nlohmann::ordered_json line{{"model", job.model}, {"ranks", job.ranks}, {"threads", job.threads}};
  if (job.replicas) line.update({{"shard", job.shard}, {"stages", job.stages}});
  add_spreads(results.steps, line);
  for (const auto& [ratio, link] : results.links) {
    auto& object = line["links"].emplace_back();
    add_spreads(link, object);
    object["communication_over_compute"] = ratio;
  }
  columns shown{
      {"model"}, {"ranks"}, {results.rate}, {"step_s"}, {"step_over_compute"}, {"waiting_step_over_compute"}};
  if (job.replicas)
    shown.insert(shown.end(),
                 {{"replicas_step_s"}, {"replicas_over_ddp"}, {"replicas_over_ddp_by_processor"}});
  if (job.named_calls)
    shown.insert(shown.end(),
                 {{"named_step_s"}, {"named_over_replicas"}, {"named_over_replicas_by_processor"}});
  if (job.fsdp)
    shown.insert(shown.end(), {{"sharded_step_s"}, {"sharded_over_ddp"}, {"sharded_over_ddp_by_processor"}});
  if (results.steps.contains("over_torch"))
    shown.insert(shown.end(), {{"torch_" + results.rate}, {"over_torch"}});
  for (const char* over :
       {"replicas_over_torch", "fsdp_over_torch", "replicas_over_fsdp", "sharded_over_fsdp"})
    if (results.steps.contains(over)) shown.push_back({over});
  output.add(shown, line);
  if (results.links.empty()) return;
  columns of_link{{"communication_over_compute"},
                  {"step_over_larger"},
                  {"best_over_larger"},
                  {"waiting_step_over_larger"},
                  {"step_over_sum"}};
  if (job.replicas) of_link.push_back({"replicas_step_over_larger"});
  if (job.named_calls) of_link.push_back({"named_over_replicas"});
  if (job.fsdp) of_link.push_back({"sharded_step_over_larger"});
  for (const auto& link : line["links"]) output.add_detail(of_link, link);
}

void run(const ddp_options& options) {
  report output("ddp", options.json);
  for (const auto& model : options.models)
    for (auto ranks : options.ranks) {
      auto job = options.each;
      job.model = model;
      job.ranks = ranks;
      ddp_results results;
      for (int round = 0; round < options.rounds; ++round) measure_round(job, options, results);
      print(job, results, output);
    }
  if (options.torch.empty()) output.note("torch", "no peer was measured (--torch ROOT)");
}

}  // namespace

void add_ddp_bench(const bench_commands& to) {
  auto options = std::make_shared<ddp_options>();
  auto& each = options->each;
  auto& command = *to.bench.add_subcommand("ddp", "Time data-parallel training in processes of this host");
  command.add_option("--model,--models", options->models, "gpt, mlp, cnn, with commas between")
      ->delimiter(',')
      ->check(CLI::IsMember({"gpt", "mlp", "cnn"}));
  command.add_option("--ranks", options->ranks, "Numbers of processes, with commas between")
      ->delimiter(',')
      ->check(CLI::Range(1, 64));
  command.add_option("--threads", each.threads, "Of each process")->check(CLI::Range(1, 1024));
  command.add_option("--batch", each.batch, "Of each process; 0: the model's own");
  command.add_option("--seconds", each.seconds, "Of each timing")->check(CLI::Range(0.001, 3600.0));
  command.add_option("--rounds", options->rounds, "Measurements, in turn with the peer's")
      ->check(CLI::Range(1, 1000));
  command.add_flag("--replicas", each.replicas,
                   "Measure a pipeline with a replica in each process beside DataParallel, in turn");
  auto* replicas = command.get_option("--replicas");
  command
      .add_option("--shard", each.shard,
                  "What these replicas divide: none, optimizer, grad or full, as a job's --shard")
      ->check(CLI::IsMember({"none", "optimizer", "grad", "full"}))
      ->needs(replicas);
  command.add_option("--stages", each.stages, "Of the pipeline, all on its device, in looped_bfs")
      ->check(CLI::Range(1, 1024))
      ->needs(replicas);
  command
      .add_flag("--named-calls", each.named_calls,
                "Measure these replicas over a communicator whose calls are named, too")
      ->needs(replicas);
  command.add_flag("--fsdp", each.fsdp, "Measure FullyShardedDataParallel beside DataParallel, in turn");
  command.add_option("--unit-mb", each.unit_size_mb, "unit_size_mb of FullyShardedDataParallel")
      ->check(CLI::Range(1e-6, 1e6))
      ->needs("--fsdp");
  command.add_option("--bucket-mb", each.bucket_size_mb, "bucket_size_mb of DataParallel");
  command.add_option("--first-bucket-mb", each.first_bucket_mb, "first_bucket_mb");
  command
      .add_option(
          "--links", each.links,
          "Slow links: how long the gradients take over each, in steps' computing, with commas between")
      ->delimiter(',');
  command.add_option("--torch", options->torch,
                     "Measure PyTorch DDP over Gloo beside it, with --shard full or --fsdp FSDP2 too, in the "
                     "system with this "
                     "root");
  command.add_option("--torch-script", options->torch_script, "Troupe's tools/bench/torch_compute.py");
  command.add_flag("--json", options->json, "One JSON object for each model and number of processes");
  command.callback([options] { run(*options); });
  add_worker(to, "ddp", [](const nlohmann::json& job) { train(job.get<ddp_job>()); });
}

}  // namespace troupe::bench
