#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <thread>

#include "bench/benches.hpp"
#include "bench/compute/compute_job.hpp"
#include "bench/compute/device_rates.hpp"
#include "bench/measure/arguments.hpp"
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

/// What one model came to at one number of threads: of each round, by the names in the result.
struct results {
  nlohmann::json last;
  std::string unit;
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, double> largest;
};

nlohmann::json run_own(const compute_job& job) { return run_for_object(worker_command("compute", job)); }

nlohmann::json torch_arguments(const compute_job& job) {
  return {{"model", job.model},   {"threads", job.threads}, {"dtype", job.dtype},
          {"device", job.device}, {"batch", job.batch},     {"length", job.length}};
}

void measure_torch(const compute_job& job, const compute_options& options, const std::string& name,
                   results& found) {
  auto arguments = torch_arguments(job);
  arguments["seconds"] = job.seconds;
  if (name == "torch_compiled") arguments["compile"] = true;
  auto seen = run_torch(options.torch, options.torch_script, arguments);
  auto& rates = found.values[name + "_" + found.unit];
  rates.push_back(seen.at(found.unit));
  found.values["over_" + name].push_back(found.values[found.unit].back() / rates.back());
  auto& mib = found.largest[name + "_own_mib"];
  mib = std::max(mib, seen.at("own_mib").get<double>());
}

void measure_round(const compute_job& job, const compute_options& options, results& found) {
  found.last = run_own(job);
  found.unit = found.last.contains("tokens_per_s") ? "tokens_per_s" : "samples_per_s";
  for (const auto& name :
       {found.unit.c_str(), "of_product_rate", "product_gflops_per_s", "of_copy_rate", "copy_gb_per_s"})
    found.values[name].push_back(found.last.at(name));
  for (const char* name : {"own_mib", "allocations_after_warm_up"})
    found.largest[name] = std::max(found.largest[name], found.last.at(name).get<double>());
  if (options.busy_loops > 0) {
    // Of means: the median hides the steps in which a thread of a team had no core.
    busy_loops beside(options.busy_loops);
    found.values["slowdown"].push_back(run_own(job).at("mean_step_s").get<double>() /
                                       found.last.at("mean_step_s").get<double>());
  }
  if (!options.torch.empty()) measure_torch(job, options, "torch", found);
  if (options.torch_compile) measure_torch(job, options, "torch_compiled", found);
}

/// How a step's kernels come to the device.
const char* queueing_of(const compute_job& job) {
  if (job.device.starts_with("cpu")) return "direct";
  return job.queue_each_kernel ? "each_kernel" : "graph";
}

table columns(const compute_options& options) {
  table shown{{{"model", {"model"}},
               {"dtype", {"dtype"}},
               {"device", {"device"}, 24},
               {"threads", {"threads"}, 0, 0},
               {"tokens or samples/s", {"tokens_per_s", "samples_per_s"}, of_spread, 0},
               {"% of the products' rate", {"of_product_rate"}, 0, 1, 100},
               {"GFLOP/s", {"product_gflops_per_s"}, 16, 0},
               {"% of a copy's rate", {"of_copy_rate"}, 20, 1, 100},
               {"GB/s", {"copy_gb_per_s"}, 12, 0},
               {"MiB", {"own_mib"}, of_number, 0}}};
  if (options.busy_loops > 0) shown.columns.push_back({"slowdown by busy loops", {"slowdown"}, 0, 1});
  for (const std::string name : {"torch", "torch_compiled"}) {
    if (options.torch.empty() || (name == "torch_compiled" && !options.torch_compile)) continue;
    shown.columns.push_back({name + "/s", {name + "_tokens_per_s", name + "_samples_per_s"}, of_spread, 0});
    shown.columns.push_back({name + " MiB", {name + "_own_mib"}, 0, 0});
    shown.columns.push_back({"over " + name, {"over_" + name}, 18});
  }
  return shown;
}

void time_model(const compute_job& job, const compute_options& options, report& output) {
  results found;
  for (int round = 0; round < options.rounds; ++round) measure_round(job, options, found);
  nlohmann::ordered_json line{{"event", "compute"},
                              {"model", job.model},
                              {"device", found.last.at("device")},
                              {"threads", job.threads},
                              {"dtype", job.dtype},
                              {"queueing", queueing_of(job)},
                              {"numeric_class", found.last.at("numeric_class")}};
  if (options.busy_loops > 0) line["busy_loops"] = options.busy_loops;
  for (const auto& [name, values] : found.values) line[name] = spread_json(values);
  for (const auto& [name, value] : found.largest) line[name] = value;
  output.add(columns(options), line);
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
  const table shown{{{"model", {"model"}},
                     {"steps", {"steps"}, 0, 0},
                     {"first losses", {"first"}, 16, 5},
                     {"last losses", {"last"}, 16, 5},
                     {"largest relative difference", {"largest_relative_difference"}, 0, 7}}};
  output.add(shown, {{"event", "losses"},
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

void add_compute_bench(CLI::App& app) {
  auto options = std::make_shared<compute_options>();
  auto& each = options->each;
  subcommand command(app, "compute", "Time training steps against the matrix products in them");
  command.add("--models,--model", options->models, "gpt, gpt2, mlp, cnn, loop, with commas between",
              one_of({"gpt", "gpt2", "mlp", "cnn", "loop"}));
  command.add("--device", each.device, "cpu, or a GPU such as cuda:0");
  command.add("--batch", each.batch, "Sequences or samples in a step; 0: the model's own number",
              between(0, 1 << 20));
  command.add("--length", each.length, "Tokens in a sequence; 0: the model's context", between(0, 1 << 20));
  command.add("--threads", options->threads,
              "Numbers of threads, with commas between; by default 1 and, on the CPU, the cores",
              between(1, 1024));
  command.add("--dtype", each.dtype, "f32, tf32 on a GPU, or bf16 for mixed precision",
              one_of({"f32", "tf32", "bf16"}));
  command.add("--seconds", each.seconds, "Of one measurement");
  command.add("--rounds", options->rounds, "Measurements, in turn with the peer's", between(1, 1000));
  command.add("--busy-loops", options->busy_loops,
              "Measure each model beside so many busy loops as well, in turn", between(0, 1024));
  command.add("--losses", each.losses,
              "Compare the losses of so many steps from the same weights instead of speeds");
  command.add_flag("--queue-each-kernel", each.queue_each_kernel,
                   "On a GPU: queue each kernel of a step by itself, not both passes as one CUDA graph");
  command.add("--torch", options->torch,
              "Measure PyTorch beside it, in the system with this root; / is this one");
  command.add_flag("--torch-compile", options->torch_compile,
                   "Measure PyTorch through torch.compile as well");
  command.add("--torch-script", options->torch_script, "Troupe's tools/bench/torch_compute.py");
  command.add_flag("--json", options->json, "One JSON object for each model and number of threads");
  command.on_run([options] { run(*options); });
}

}  // namespace troupe::bench
