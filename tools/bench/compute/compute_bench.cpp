#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "bench/benches.hpp"
#include "bench/compute/device_rates.hpp"
#include "bench/measure/busy_loops.hpp"
#include "bench/measure/machine.hpp"
#include "bench/measure/measured_object.hpp"
#include "bench/measure/spread.hpp"
#include "bench/processes/this_program.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::bench {
namespace {

struct compute_options {
  std::vector<std::string> models = {"gpt", "mlp", "cnn"};
  std::vector<int> threads;
  std::string type = "f32";
  std::string device = "cpu";
  std::int64_t batch = 0, length = 0;
  double seconds = 4;
  int rounds = 5;
  int losses = 0;
  int busy_loops = 0;
  std::filesystem::path torch;
  std::filesystem::path torch_script = "tools/bench/torch_compute.py";
  bool torch_compile = false;
  bool queue_each_kernel = false;
  bool json = false;
};

/// One side's arguments for one model.
struct task {
  std::string model;
  int threads = 1;
  std::vector<std::string> more;
};

std::vector<std::string> arguments_of(const task& what, const compute_options& options) {
  std::vector<std::string> arguments{"--model",   what.model,
                                     "--threads", std::to_string(what.threads),
                                     "--dtype",   options.type,
                                     "--device",  options.device,
                                     "--batch",   std::to_string(options.batch),
                                     "--length",  std::to_string(options.length)};
  arguments.insert(arguments.end(), what.more.begin(), what.more.end());
  return arguments;
}

nlohmann::json run_own(const task& what, const compute_options& options) {
  std::vector<std::string> command{this_program(), "bench", "worker", "compute"};
  auto arguments = arguments_of(what, options);
  command.insert(command.end(), arguments.begin(), arguments.end());
  if (options.queue_each_kernel) command.push_back("--queue-each-kernel");
  return last_object(command, {});
}

nlohmann::json run_torch(const task& what, const compute_options& options) {
  return bench::run_torch(options.torch, options.torch_script, what.threads, arguments_of(what, options));
}

/// PyTorch's side, as it is or through torch.compile.
struct peer {
  std::vector<double> rate, ratio;
  double mib = 0;
};

/// What one model came to at one number of threads.
struct results {
  std::string unit, device, numeric_class;
  std::vector<double> own, of_product_rate, product_rate, of_copy_rate, copy_rate;
  std::vector<double> slowdown;  ///< of a step beside busy loops
  double own_mib = 0;
  std::uint64_t allocations = 0;
  peer torch, compiled;
};

void measure_peer(const task& what, const compute_options& options, const results& own, peer& torch) {
  auto seen = run_torch(what, options);
  torch.rate.push_back(seen.at(own.unit));
  torch.ratio.push_back(own.own.back() / torch.rate.back());
  torch.mib = std::max(torch.mib, seen.at("own_mib").get<double>());
}

/// How many times as long a step takes beside busy loops, in the mean: the median hides the steps in which a
/// thread of a team had no core.
double slowdown_beside(const task& what, const compute_options& options, const nlohmann::json& alone) {
  busy_loops beside(options.busy_loops);
  auto shared = run_own(what, options).at("mean_step_s").get<double>();
  return shared / alone.at("mean_step_s").get<double>();
}

results measure(const std::string& model, int threads, const compute_options& options) {
  results found;
  task what{model, threads, {"--seconds", std::to_string(options.seconds)}};
  for (int round = 0; round < options.rounds; ++round) {
    auto own = run_own(what, options);
    found.unit = own.contains("tokens_per_s") ? "tokens_per_s" : "samples_per_s";
    found.own.push_back(own.at(found.unit));
    found.of_product_rate.push_back(own.at("of_product_rate"));
    found.product_rate.push_back(own.at("product_gflops_per_s"));
    found.of_copy_rate.push_back(own.at("of_copy_rate"));
    found.copy_rate.push_back(own.at("copy_gb_per_s"));
    found.own_mib = std::max(found.own_mib, own.at("own_mib").get<double>());
    found.allocations = std::max(found.allocations, own.at("allocations_after_warm_up").get<std::uint64_t>());
    if (options.busy_loops > 0) found.slowdown.push_back(slowdown_beside(what, options, own));
    found.device = own.at("device");
    found.numeric_class = own.at("numeric_class");
    if (!options.torch.empty()) measure_peer(what, options, found, found.torch);
    if (!options.torch_compile) continue;
    auto compiled = what;
    compiled.more.push_back("--compile");
    measure_peer(compiled, options, found, found.compiled);
  }
  return found;
}

void add_peer(const std::string& name, const peer& of, const std::string& unit,
              nlohmann::ordered_json& line) {
  if (of.rate.empty()) return;
  line[name + "_" + unit] = to_json(spread_of(of.rate));
  line["over_" + name] = to_json(spread_of(of.ratio));
  line[name + "_own_mib"] = of.mib;
}

void print_peer(const char* name, const peer& of) {
  if (of.rate.empty()) return;
  std::printf("   %s %s, %.0f MiB   ratio %s", name, to_text(spread_of(of.rate), 1, 0).c_str(), of.mib,
              to_text(spread_of(of.ratio), 1, 2).c_str());
}

/// How a step's kernels come to the device.
const char* queueing_of(const compute_options& options) {
  if (options.device.starts_with("cpu")) return "direct";
  return options.queue_each_kernel ? "each_kernel" : "graph";
}

void print_json(const task& what, const results& found, const compute_options& options,
                const machine& where) {
  nlohmann::ordered_json line{{"event", "compute"},
                              {"model", what.model},
                              {"device", found.device},
                              {"threads", what.threads},
                              {"dtype", options.type},
                              {"queueing", queueing_of(options)},
                              {"numeric_class", found.numeric_class},
                              {found.unit, to_json(spread_of(found.own))},
                              {"of_product_rate", to_json(spread_of(found.of_product_rate))},
                              {"product_gflops_per_s", to_json(spread_of(found.product_rate))},
                              {"of_copy_rate", to_json(spread_of(found.of_copy_rate))},
                              {"copy_gb_per_s", to_json(spread_of(found.copy_rate))},
                              {"own_mib", found.own_mib},
                              {"allocations_after_warm_up", found.allocations}};
  if (options.busy_loops > 0) {
    line["busy_loops"] = options.busy_loops;
    line["slowdown"] = to_json(spread_of(found.slowdown));
  }
  add_peer("torch", found.torch, found.unit, line);
  add_peer("torch_compiled", found.compiled, found.unit, line);
  line["machine"] = to_json(where);
  std::printf("%s\n", line.dump().c_str());
}

void print(const task& what, const results& found, const compute_options& options, const machine& where) {
  if (options.json) return print_json(what, found, options, where);
  std::printf(
      "%-4s %s, %s, %d thread%s   %s %s   %s %% of the products' rate (%s GFLOP/s)   "
      "%s %% of a copy's (%s GB/s)   %.0f MiB",
      what.model.c_str(), options.type.c_str(), found.device.c_str(), what.threads,
      what.threads == 1 ? "" : "s", to_text(spread_of(found.own), 1, 0).c_str(), found.unit.c_str(),
      to_text(spread_of(found.of_product_rate), 100, 1).c_str(),
      to_text(spread_of(found.product_rate), 1, 0).c_str(),
      to_text(spread_of(found.of_copy_rate), 100, 1).c_str(),
      to_text(spread_of(found.copy_rate), 1, 0).c_str(), found.own_mib);
  if (options.busy_loops > 0)
    std::printf("   %s times as long beside %d busy loops", to_text(spread_of(found.slowdown), 1, 1).c_str(),
                options.busy_loops);
  if (found.torch.rate.empty()) std::printf("   no peer was measured (--torch ROOT)");
  print_peer("torch", found.torch);
  print_peer("torch.compile", found.compiled);
  std::printf("\n");
}

/// Trains both from the same weights on the same batches. Returns the largest relative difference.
double compare_losses(const std::string& model, const compute_options& options) {
  const std::string inside = "/tmp/troupe-compute-weights.safetensors";
  auto file = options.torch / inside.substr(1);
  task own{model, 1, {"--losses", std::to_string(options.losses), "--weights", file.string()}}, torch = own;
  torch.more.back() = inside;
  auto mine = run_own(own, options).at("losses").get<std::vector<double>>();
  auto theirs = run_torch(torch, options).at("losses").get<std::vector<double>>();
  std::filesystem::remove(file);
  double largest = 0;
  for (std::size_t i = 0; i < mine.size(); ++i)
    largest = std::max(largest, std::abs(mine[i] - theirs.at(i)) / std::abs(theirs[i]));
  if (options.json)
    std::printf("%s\n", nlohmann::ordered_json{{"event", "losses"},
                                               {"model", model},
                                               {"steps", mine.size()},
                                               {"largest_relative_difference", largest},
                                               {"own", mine},
                                               {"torch", theirs}}
                            .dump()
                            .c_str());
  else
    std::printf(
        "%-4s losses of %zu steps from the same weights: %.5f to %.5f, torch %.5f to %.5f, largest relative "
        "difference %.2e\n",
        model.c_str(), mine.size(), mine.front(), mine.back(), theirs.front(), theirs.back(), largest);
  return largest;
}

int run(compute_options options) {
  auto where = this_machine();
  auto device = device_from_string(options.device);
  require_device(device);
  bench_precision{options.type}.choose(device);
  if (options.losses > 0 && options.torch.empty())
    throw bad_input("--losses compares with PyTorch: say where it is with --torch ROOT");
  if (options.torch_compile && options.torch.empty())
    throw bad_input("--torch-compile measures PyTorch: say where it is with --torch ROOT");
  if (!options.torch.empty() && std::ranges::count(options.models, "loop") > 0)
    throw bad_input("--models loop: torch_compute.py has no such model; leave --torch or loop out");
  if (options.threads.empty()) {
    options.threads = {1};
    if (where.cores > 1 && options.device.starts_with("cpu")) options.threads.push_back(where.cores);
  }
  if (!options.json) std::printf("machine    %s\n", to_text(where).c_str());
  for (const auto& model : options.models) {
    if (options.losses > 0) compare_losses(model, options);
    if (options.losses == 0)
      for (auto threads : options.threads)
        print({model, threads, {}}, measure(model, threads, options), options, where);
  }
  return 0;
}

}  // namespace

void add_compute_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<compute_options>();
  auto* command = app.add_subcommand("compute", "Time training steps against the matrix products in them");
  command->add_option("--models,--model", options->models, "gpt, gpt2, mlp, cnn, loop, with commas between")
      ->delimiter(',')
      ->check(CLI::IsMember({"gpt", "gpt2", "mlp", "cnn", "loop"}))
      ->capture_default_str();
  command->add_option("--device", options->device, "cpu, or a GPU such as cuda:0")->capture_default_str();
  command->add_option("--batch", options->batch, "Sequences or samples in a step; 0: the model's own number")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--length", options->length, "Tokens in a sequence; 0: the model's context")
      ->check(CLI::Range(0, 1 << 20));
  command
      ->add_option("--threads", options->threads,
                   "Numbers of threads, with commas between; on the CPU otherwise 1 and the cores")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  command->add_option("--dtype", options->type, "f32, tf32 on a GPU, or bf16 for mixed precision")
      ->check(CLI::IsMember({"f32", "tf32", "bf16"}))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "Of one measurement")->capture_default_str();
  command->add_option("--rounds", options->rounds, "Measurements, in turn with the peer's")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--busy-loops", options->busy_loops,
                   "Measure each model beside so many busy loops as well, in turn")
      ->check(CLI::Range(0, 1024));
  command->add_option("--losses", options->losses,
                      "Compare the losses of so many steps from the same weights instead of speeds");
  command->add_flag(
      "--queue-each-kernel", options->queue_each_kernel,
      "On a GPU: queue each kernel of a step, where otherwise its forward and backward pass are "
      "one CUDA graph");
  command->add_option("--torch", options->torch,
                      "Measure PyTorch beside it, in the system with this root; / is this one");
  command->add_flag("--torch-compile", options->torch_compile,
                    "Measure PyTorch through torch.compile as well");
  command->add_option("--torch-script", options->torch_script, "Troupe's tools/bench/torch_compute.py")
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object for each model and number of threads");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
