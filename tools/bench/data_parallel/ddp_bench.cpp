#include <filesystem>
#include <map>

#include "bench/benches.hpp"
#include "bench/data_parallel/data_parallel_jobs.hpp"
#include "bench/measure/arguments.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/torch.hpp"
#include "bench/processes/subprocess.hpp"

namespace troupe::bench {
namespace {

struct ddp_options {
  std::vector<std::string> models = {"mlp", "gpt"};
  std::vector<int> ranks = {2, 4};
  ddp_job each;  ///< but for the model and the ranks
  int rounds = 5;
  std::filesystem::path torch;
  std::filesystem::path torch_script = "tools/bench/torch_compute.py";
  bool json = false;
};

/// What was measured in each round, by the names in the result.
using rounds = std::map<std::string, std::vector<double>>;

struct results {
  std::string unit;
  rounds steps;
  std::map<double, rounds> links;  ///< by communication over computing
};

constexpr const char* of_a_link[] = {"step_over_larger", "best_over_larger", "waiting_step_over_larger",
                                     "step_over_sum"};

void measure_round(const ddp_job& job, const ddp_options& options, results& found) {
  auto own = run_for_object(worker_command("ddp", job), {"OMP_WAIT_POLICY=passive"});
  found.unit = own.contains("tokens_per_s") ? "tokens_per_s" : "samples_per_s";
  auto& steps = found.steps;
  for (const char* name : {found.unit.c_str(), "step_s", "compute_s"}) steps[name].push_back(own.at(name));
  auto compute_s = steps["compute_s"].back();
  steps["step_over_compute"].push_back(steps["step_s"].back() / compute_s);
  steps["waiting_step_over_compute"].push_back(own.at("waiting_step_s").get<double>() / compute_s);
  for (const auto& link : own.value("links", nlohmann::json::array()))
    for (const char* name : of_a_link)
      found.links[link.at("communication_over_compute")][name].push_back(link.at(name));
  if (options.torch.empty()) return;
  auto torch = run_torch(options.torch, options.torch_script,
                         {{"model", job.model},
                          {"ranks", job.ranks},
                          {"threads", job.threads},
                          {"batch", job.batch},
                          {"seconds", job.seconds}});
  steps["torch_" + found.unit].push_back(torch.at(found.unit));
  steps["over_torch"].push_back(steps[found.unit].back() / steps["torch_" + found.unit].back());
}

const table steps_table{{{"model", {"model"}},
                         {"ranks", {"ranks"}, 0, 0},
                         {"tokens or samples/s", {"tokens_per_s", "samples_per_s"}, of_spread, 0},
                         {"step ms", {"step_s"}, 24, 1, 1e3},
                         {"of computing alone", {"step_over_compute"}},
                         {"waiting for gradients", {"waiting_step_over_compute"}},
                         {"torch/s", {"torch_tokens_per_s", "torch_samples_per_s"}, of_spread, 0},
                         {"over torch", {"over_torch"}, 18}}};

const table links_table{{{"  link: communication of computing", {"communication_over_compute"}},
                         {"step of the larger", {"step_over_larger"}},
                         {"at best of the larger", {"best_over_larger"}},
                         {"waiting for gradients", {"waiting_step_over_larger"}},
                         {"step of both", {"step_over_sum"}, 18}}};

void print(const ddp_job& job, const results& found, report& output) {
  nlohmann::ordered_json line{{"model", job.model}, {"ranks", job.ranks}, {"threads", job.threads}};
  for (const auto& [name, values] : found.steps) line[name] = spread_json(values);
  for (const auto& [ratio, link] : found.links) {
    nlohmann::ordered_json object{{"communication_over_compute", ratio}};
    for (const char* name : of_a_link) object[name] = spread_json(link.at(name));
    line["links"].push_back(object);
  }
  output.add(steps_table, line);
  if (found.links.empty()) return;
  for (const auto& link : line["links"]) output.add_detail(links_table, link);
}

void run(const ddp_options& options) {
  report output("ddp", options.json);
  for (const auto& model : options.models)
    for (auto ranks : options.ranks) {
      auto job = options.each;
      job.model = model;
      job.ranks = ranks;
      results found;
      for (int round = 0; round < options.rounds; ++round) measure_round(job, options, found);
      print(job, found, output);
    }
  if (options.torch.empty()) output.note("torch", "no peer was measured (--torch ROOT)");
}

}  // namespace

void add_ddp_bench(CLI::App& app) {
  auto options = std::make_shared<ddp_options>();
  auto& each = options->each;
  subcommand command(app, "ddp", "Time data-parallel training in processes of this host");
  command.add("--model,--models", options->models, "gpt, mlp, cnn, with commas between",
              one_of({"gpt", "mlp", "cnn"}));
  command.add("--ranks", options->ranks, "Numbers of processes, with commas between", between(1, 64));
  command.add("--threads", each.threads, "Of each process", between(1, 1024));
  command.add("--batch", each.batch, "Of each process; 0: the model's own");
  command.add("--seconds", each.seconds, "Of each timing");
  command.add("--rounds", options->rounds, "Measurements, in turn with the peer's", between(1, 1000));
  command.add("--bucket-mb", each.bucket_size_mb, "bucket_size_mb of DataParallel");
  command.add("--first-bucket-mb", each.first_bucket_mb, "first_bucket_mb");
  command.add("--links", each.links,
              "Slow links: how long the gradients take over each, in steps' computing, with commas between");
  command.add("--torch", options->torch,
              "Measure PyTorch DDP over Gloo beside it, in the system with this root");
  command.add("--torch-script", options->torch_script, "Troupe's tools/bench/torch_compute.py");
  command.add_flag("--json", options->json, "One JSON object for each model and number of processes");
  command.on_run([options] { run(*options); });
}

}  // namespace troupe::bench
