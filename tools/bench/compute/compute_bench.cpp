#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <thread>

#include "bench/benches.hpp"
#include "bench/compute/compute_job.hpp"
#include "bench/compute/device_rates.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/torch.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::bench {
namespace {

struct compute_options {
  std::vector<std::string> models = {"gpt", "mlp", "cnn"};
  std::vector<int> threads;
  compute_job each;  ///< but for the model and the threads
  int rounds = 5;
  int busy_loops = 0;
  std::filesystem::path torch;
  std::filesystem::path torch_script = "tools/bench/torch_compute.py";
  bool torch_compile = false;
  bool json = false;
};

/// While it lives, so many threads of this process keep cores busy beside the processes that are measured.
class busy_loops {
 public:
  explicit busy_loops(int count) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) continue;
      });
  }

 private:
  std::vector<std::jthread> threads_;
};

/// What one model came to at one number of threads.
struct compute_results {  // NOLINT(bugprone-exception-escape): of moving JSON, which throws nothing
  nlohmann::json last;    ///< of what our process printed
  std::string rate;       ///< tokens_per_s or samples_per_s
  measurements rounds;
  std::map<std::string, double> largest;

  void keep_largest(const std::string& name, double value) { largest[name] = std::max(largest[name], value); }
};

nlohmann::json run_own(const compute_job& job) { return run_for_object(worker_command("compute", job)); }

nlohmann::json torch_arguments(const compute_job& job) {
  return {{"model", job.model},   {"threads", job.threads}, {"dtype", job.dtype},
          {"device", job.device}, {"batch", job.batch},     {"length", job.length}};
}

void measure_torch(const compute_job& job, const compute_options& options, const std::string& name,
                   compute_results& found) {
  auto arguments = torch_arguments(job);
  arguments["seconds"] = job.seconds;
  if (name == "torch_compiled") arguments["compile"] = true;
  auto seen = run_torch(options.torch, options.torch_script, arguments);
  auto& rates = found.rounds[name + "_" + found.rate];
  rates.push_back(seen.at(found.rate));
  found.rounds["over_" + name].push_back(found.rounds[found.rate].back() / rates.back());
  found.keep_largest(name + "_own_mib", seen.at("own_mib"));
}

void measure_round(const compute_job& job, const compute_options& options, compute_results& found) {
  auto seen = found.last = run_own(job);
  found.rate = seen.contains("tokens_per_s") ? "tokens_per_s" : "samples_per_s";
  for (const auto& name :
       {found.rate.c_str(), "of_product_rate", "product_gflops_per_s", "of_copy_rate", "copy_gb_per_s"})
    found.rounds[name].push_back(seen.at(name));
  for (const char* name : {"of_fma_rate", "fma_gflops_per_s"})
    if (seen.contains(name)) found.rounds[name].push_back(seen.at(name));
  for (const char* name : {"own_mib", "allocations_after_warm_up"}) found.keep_largest(name, seen.at(name));
  if (options.busy_loops > 0) {
    // Of means: the median hides the steps in which a thread of a team had no core.
    busy_loops beside(options.busy_loops);
    found.rounds["slowdown"].push_back(run_own(job).at("mean_step_s").get<double>() /
                                       seen.at("mean_step_s").get<double>());
  }
  if (!options.torch.empty()) measure_torch(job, options, "torch", found);
  if (options.torch_compile) measure_torch(job, options, "torch_compiled", found);
}

/// How a step's kernels come to the device.
const char* queueing_of(const compute_job& job) {
  if (job.device.starts_with("cpu")) return "direct";
  return job.queue_each_kernel ? "each_kernel" : "graph";
}

/// The result as text: what was measured, and no more.
columns columns_of(const compute_results& found) {
  columns shown{{"model"},
                {"dtype"},
                {"device"},
                {"threads"},
                {found.rate},
                {"of_product_rate"},
                {"product_gflops_per_s"},
                {"of_copy_rate"},
                {"copy_gb_per_s"},
                {"own_mib"}};
  if (found.rounds.contains("of_fma_rate"))
    shown.insert(shown.begin() + 5, {{"of_fma_rate"}, {"fma_gflops_per_s"}});
  if (found.rounds.contains("slowdown")) shown.push_back({"slowdown"});
  for (const std::string name : {"torch", "torch_compiled"})
    if (found.rounds.contains("over_" + name))
      shown.insert(shown.end(), {{name + "_" + found.rate}, {name + "_own_mib"}, {"over_" + name}});
  return shown;
}

void time_model(const compute_job& job, const compute_options& options, report& output) {
  compute_results found;
  for (int round = 0; round < options.rounds; ++round) measure_round(job, options, found);
  nlohmann::ordered_json line{{"event", "compute"},
                              {"model", job.model},
                              {"device", found.last.at("device")},
                              {"threads", job.threads},
                              {"dtype", job.dtype},
                              {"queueing", queueing_of(job)},
                              {"numeric_class", found.last.at("numeric_class")}};
  if (options.busy_loops > 0) line["busy_loops"] = options.busy_loops;
  add_spreads(found.rounds, line);
  for (const auto& [name, value] : found.largest) line[name] = value;
  output.add(columns_of(found), line);
}

/// Trains both sides from the same weights on the same batches.
void compare_losses(compute_job job, const compute_options& options, report& output) {
  const std::string path_inside = "/tmp/troupe-compute-weights.safetensors";
  job.weights = options.torch / path_inside.substr(1);
  auto own = run_own(job).at("losses").get<std::vector<double>>();
  auto arguments = torch_arguments(job);
  arguments.update({{"losses", job.losses}, {"weights", path_inside}});
  auto torch =
      run_torch(options.torch, options.torch_script, arguments).at("losses").get<std::vector<double>>();
  std::filesystem::remove(job.weights);
  double largest = 0;
  for (std::size_t i = 0; i < own.size(); ++i)
    largest = std::max(largest, std::abs(own[i] - torch.at(i)) / std::abs(torch[i]));
  output.add({{"model"}, {"steps"}, {"first"}, {"last"}, {"largest_relative_difference"}},
             {{"event", "losses"},
              {"model", job.model},
              {"steps", own.size()},
              {"largest_relative_difference", largest},
              {"first", {own.front(), torch.front()}},
              {"last", {own.back(), torch.back()}},
              {"own", own},
              {"torch", torch}});
}

void check(const compute_options& options) {
  auto device = device_from_string(options.each.device);
  require_device(device);
  bench_precision{options.each.dtype}.choose(device);
  if (options.each.losses > 0 && options.torch.empty())
    throw bad_input("--losses compares with PyTorch: say where it is with --torch ROOT");
  if (options.torch_compile && options.torch.empty())
    throw bad_input("--torch-compile measures PyTorch: say where it is with --torch ROOT");
  if (!options.torch.empty() && std::ranges::count(options.models, "loop") > 0)
    throw bad_input("--models loop: torch_compute.py has no such model; leave --torch or loop out");
}

void run(compute_options options) {
  check(options);
  report output("compute", options.json);
  auto cores = output.where().cores;
  if (options.threads.empty()) {
    options.threads = {1};
    if (cores > 1 && options.each.device.starts_with("cpu")) options.threads.push_back(cores);
  }
  for (const auto& model : options.models) {
    auto job = options.each;
    job.model = model;
    if (job.losses > 0) {
      compare_losses(job, options, output);
      continue;
    }
    for (auto threads : options.threads) {
      job.threads = threads;
      time_model(job, options, output);
    }
  }
  if (options.torch.empty()) output.note("torch", "no peer was measured (--torch ROOT)");
}

}  // namespace

void add_compute_bench(const bench_commands& to) {
  auto options = std::make_shared<compute_options>();
  auto& each = options->each;
  auto& command =
      *to.bench.add_subcommand("compute", "Time training steps against the matrix products in them");
  command.add_option("--models,--model", options->models, "gpt, gpt2, mlp, cnn, loop, with commas between")
      ->delimiter(',')
      ->check(CLI::IsMember({"gpt", "gpt2", "mlp", "cnn", "loop"}));
  command.add_option("--device", each.device, "cpu, or a GPU such as cuda:0");
  command.add_option("--batch", each.batch, "Sequences or samples in a step; 0: the model's own number")
      ->check(CLI::Range(0, 1 << 20));
  command.add_option("--length", each.length, "Tokens in a sequence; 0: the model's context")
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option("--threads", options->threads,
                  "Numbers of threads, with commas between; by default 1 and, on the CPU, the cores")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  command.add_option("--dtype", each.dtype, "f32, tf32 on a GPU, or bf16 for mixed precision")
      ->check(CLI::IsMember({"f32", "tf32", "bf16"}));
  command.add_option("--seconds", each.seconds, "Of one measurement")->check(CLI::Range(0.001, 3600.0));
  command.add_option("--rounds", options->rounds, "Measurements, in turn with the peer's")
      ->check(CLI::Range(1, 1000));
  command
      .add_option("--busy-loops", options->busy_loops,
                  "Measure each model beside so many busy loops as well, in turn")
      ->check(CLI::Range(0, 1024));
  command.add_option("--losses", each.losses,
                     "Compare the losses of so many steps from the same weights instead of speeds");
  command.add_flag("--queue-each-kernel", each.queue_each_kernel,
                   "On a GPU: queue each kernel of a step by itself, not both passes as one CUDA graph");
  command.add_option("--torch", options->torch,
                     "Measure PyTorch beside it, in the system with this root; / is this one");
  command.add_flag("--torch-compile", options->torch_compile,
                   "Measure PyTorch through torch.compile as well");
  command.add_option("--torch-script", options->torch_script, "Troupe's tools/bench/torch_compute.py");
  command.add_flag("--json", options->json, "One JSON object for each model and number of threads");
  command.callback([options] { run(*options); });
  add_worker(to, "compute", [](const nlohmann::json& job) { train(job.get<compute_job>()); });
}

}  // namespace troupe::bench
