#include <cstdio>
#include <filesystem>
#include <map>

#include "bench/benches.hpp"
#include "bench/measure/machine.hpp"
#include "bench/measure/measured_object.hpp"
#include "bench/measure/spread.hpp"
#include "bench/processes/this_program.hpp"

namespace troupe::bench {
namespace {

struct ddp_options {
  std::vector<std::string> models = {"mlp", "gpt"};
  std::vector<int> ranks = {2, 4};
  int threads = 1;
  std::int64_t batch = 0;
  double seconds = 4;
  int rounds = 5;
  double bucket_size_mb = 25, first_bucket_mb = 1;
  std::vector<double> links;
  std::filesystem::path torch;
  std::filesystem::path torch_script = "tools/bench/torch_compute.py";
  bool json = false;
};

std::vector<std::string> arguments_of(const std::string& model, int ranks, const ddp_options& options) {
  return {"--model",   model,
          "--ranks",   std::to_string(ranks),
          "--threads", std::to_string(options.threads),
          "--batch",   std::to_string(options.batch),
          "--seconds", std::to_string(options.seconds)};
}

nlohmann::json run_own(const std::string& model, int ranks, const ddp_options& options) {
  std::vector<std::string> command{this_program(), "bench", "worker", "ddp"};
  for (const auto& each : arguments_of(model, ranks, options)) command.push_back(each);
  for (const auto& each : {"--bucket-mb=" + std::to_string(options.bucket_size_mb),
                           "--first-bucket-mb=" + std::to_string(options.first_bucket_mb)})
    command.push_back(each);
  for (auto link : options.links) command.push_back("--links=" + std::to_string(link));
  return last_object(command, {"OMP_WAIT_POLICY=passive"});
}

/// One model on some ranks, over all rounds.
struct results {
  std::string unit;
  std::vector<double> own, torch, ratio, step_s, compute_s, over_compute, waiting_over_compute;
  /// By link: over the larger of computing and communication, or over both.
  std::map<double, std::vector<double>> over_larger, waiting_over_larger, best_over_larger, over_sum;
};

results measure(const std::string& model, int ranks, const ddp_options& options) {
  results found;
  for (int round = 0; round < options.rounds; ++round) {
    auto own = run_own(model, ranks, options);
    found.unit = own.contains("tokens_per_s") ? "tokens_per_s" : "samples_per_s";
    found.own.push_back(own.at(found.unit));
    found.step_s.push_back(own.at("step_s"));
    found.compute_s.push_back(own.at("compute_s"));
    found.over_compute.push_back(found.step_s.back() / found.compute_s.back());
    found.waiting_over_compute.push_back(own.at("waiting_step_s").get<double>() / found.compute_s.back());
    for (const auto& link : own.value("links", nlohmann::json::array())) {
      double ratio = link.at("communication_over_compute");
      found.over_larger[ratio].push_back(link.at("step_over_larger"));
      found.waiting_over_larger[ratio].push_back(link.at("waiting_step_over_larger"));
      found.best_over_larger[ratio].push_back(link.at("best_over_larger"));
      found.over_sum[ratio].push_back(link.at("step_over_sum"));
    }
    if (options.torch.empty()) continue;
    auto torch =
        run_torch(options.torch, options.torch_script, options.threads, arguments_of(model, ranks, options));
    found.torch.push_back(torch.at(found.unit));
    found.ratio.push_back(found.own.back() / found.torch.back());
  }
  return found;
}

void print_json(const std::string& model, int ranks, const results& found, const ddp_options& options,
                const machine& where) {
  nlohmann::ordered_json line{{"event", "ddp"},
                              {"model", model},
                              {"ranks", ranks},
                              {"threads", options.threads},
                              {found.unit, to_json(spread_of(found.own))},
                              {"step_s", to_json(spread_of(found.step_s))},
                              {"compute_s", to_json(spread_of(found.compute_s))},
                              {"step_over_compute", to_json(spread_of(found.over_compute))},
                              {"waiting_step_over_compute", to_json(spread_of(found.waiting_over_compute))}};
  for (const auto& [link, over] : found.over_larger)
    line["links"].push_back(
        {{"communication_over_compute", link},
         {"step_over_larger", to_json(spread_of(over))},
         {"best_over_larger", to_json(spread_of(found.best_over_larger.at(link)))},
         {"waiting_step_over_larger", to_json(spread_of(found.waiting_over_larger.at(link)))},
         {"step_over_sum", to_json(spread_of(found.over_sum.at(link)))}});
  if (!found.torch.empty()) {
    line["torch_" + found.unit] = to_json(spread_of(found.torch));
    line["over_torch"] = to_json(spread_of(found.ratio));
  }
  line["machine"] = to_json(where);
  std::printf("%s\n", line.dump().c_str());
}

void print(const std::string& model, int ranks, const results& found) {
  std::printf("%-4s %d ranks   %s %s   step %s ms, %s of computing alone (waiting for gradients %s)",
              model.c_str(), ranks, to_text(spread_of(found.own), 1, 0).c_str(), found.unit.c_str(),
              to_text(spread_of(found.step_s), 1e3, 1).c_str(),
              to_text(spread_of(found.over_compute), 1, 2).c_str(),
              to_text(spread_of(found.waiting_over_compute), 1, 2).c_str());
  if (found.torch.empty())
    std::printf("   no peer was measured (--torch ROOT)\n");
  else
    std::printf("   torch %s   ratio %s\n", to_text(spread_of(found.torch), 1, 0).c_str(),
                to_text(spread_of(found.ratio), 1, 2).c_str());
  for (const auto& [link, over] : found.over_larger)
    std::printf(
        "     link: communication %.2f of computing   step %s of the larger (at best %s, waiting for "
        "gradients "
        "%s), %s of both\n",
        link, to_text(spread_of(over), 1, 2).c_str(),
        to_text(spread_of(found.best_over_larger.at(link)), 1, 2).c_str(),
        to_text(spread_of(found.waiting_over_larger.at(link)), 1, 2).c_str(),
        to_text(spread_of(found.over_sum.at(link)), 1, 2).c_str());
}

int run(const ddp_options& options) {
  auto where = this_machine();
  if (!options.json) std::printf("machine    %s\n", to_text(where).c_str());
  for (const auto& model : options.models)
    for (auto ranks : options.ranks) {
      auto found = measure(model, ranks, options);
      options.json ? print_json(model, ranks, found, options, where) : print(model, ranks, found);
      std::fflush(stdout);
    }
  return 0;
}

}  // namespace

void add_ddp_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ddp_options>();
  auto* command = app.add_subcommand("ddp", "Time data-parallel training in processes of this host");
  command->add_option("--model,--models", options->models, "gpt, mlp, cnn, with commas between")
      ->delimiter(',')
      ->check(CLI::IsMember({"gpt", "mlp", "cnn"}))
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "Numbers of processes, with commas between")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Of each process")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Of each process; 0: the model's own");
  command->add_option("--seconds", options->seconds, "Of each timing")->capture_default_str();
  command->add_option("--rounds", options->rounds, "Measurements, in turn with the peer's")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--bucket-mb", options->bucket_size_mb, "bucket_size_mb of DataParallel")
      ->capture_default_str();
  command->add_option("--first-bucket-mb", options->first_bucket_mb, "first_bucket_mb")
      ->capture_default_str();
  command
      ->add_option(
          "--links", options->links,
          "Slow links: how long the gradients take over each, in steps' computing, with commas between")
      ->delimiter(',');
  command->add_option("--torch", options->torch,
                      "Measure PyTorch DDP over Gloo beside it, in the system with this root");
  command->add_option("--torch-script", options->torch_script, "Troupe's tools/bench/torch_compute.py")
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object for each model and number of processes");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
