// Trains one of the models for a while in this process, without actors, and prints one JSON object.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/compute/compute_training.hpp"
#include "bench/compute/device_rates.hpp"
#include "bench/measure/spread.hpp"
#include "bench/processes/workers.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/numeric_class.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/snapshot/safetensors.hpp"
#include "troupe/tensor/devices.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::bench {
namespace {

struct worker_options {
  compute_model_options model;
  std::string device = "cpu";
  int threads = 1;
  double seconds = 8;
  bench_precision precision;
  int losses = 0;
  std::string weights;
  queueing how = queueing::recorded;
};

double resident_mib(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == key + ":") {
      double kib = 0;
      status >> kib;
      return kib / 1024;
    }
  return 0;
}

std::vector<double> losses(compute_model& model, const worker_options& options) {
  compute_training training(model, options.how);
  std::vector<double> result;
  for (int step = 0; step < options.losses; ++step) result.push_back(training.step());
  return result;
}

/// Bytes that tensors held at most, in MiB: in all, and by what they are for.
nlohmann::ordered_json memory_mib(device where) {
  auto seen = memory_of(where);
  auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  auto of = [&](memory_category what) { return mib(seen.peak_by_category[static_cast<std::size_t>(what)]); };
  return {{"all", mib(seen.peak)},
          {"parameters", of(memory_category::parameters)},
          {"gradients", of(memory_category::gradients)},
          {"optimizer", of(memory_category::optimizer)},
          {"activations", of(memory_category::activations)}};
}

/// The least that a step moves: the weights are read in both passes and by the optimizer, gradients are
/// written and read, Adam's two moments and the weights are read and written; activations are written once
/// and read once.
double step_bytes(compute_model& model, device where) {
  double parameters = 0;
  for (const auto* each : model.module->parameters())
    parameters += static_cast<double>(each->value().size_bytes());
  auto activations =
      memory_of(where).peak_by_category[static_cast<std::size_t>(memory_category::activations)];
  return 10 * parameters + 2 * static_cast<double>(activations);
}

nlohmann::ordered_json timed(compute_model& model, const worker_options& options) {
  auto where = options.model.where;
  compute_training training(model, options.how);
  product_rate rate(options.precision.dtype(), where);
  rate.measure();
  auto copied_per_s = copy_bytes_per_s(where);
  for (int step = 0; step < 3; ++step) training.step();
  std::vector<double> times;
  double total = 0;
  auto before = memory_of(where).num_from_system;
  while (total < options.seconds || times.size() < 5) {
    times.push_back(seconds_of(where, [&] { training.step(); }));
    total += times.back();
    if (times.size() % 16 == 0) rate.measure();
  }
  auto allocated = memory_of(where).num_from_system - before;
  rate.measure();
  auto step_s = spread_of(times).median;
  return {{model.unit + "_per_s", static_cast<double>(model.items) / step_s},
          {"step_s", step_s},
          {"mean_step_s", total / static_cast<double>(times.size())},
          {"steps", times.size()},
          {"product_gflops_per_s", rate.flops_per_s() / 1e9},
          {"of_product_rate", model.step_flops / rate.flops_per_s() / step_s},
          {"copy_gb_per_s", copied_per_s / 1e9},
          {"of_copy_rate", step_bytes(model, where) / copied_per_s / step_s},
          {"allocations_after_warm_up", allocated},
          {"peak_mib", resident_mib("VmHWM")},
          {"tensors_peak_mib", memory_mib(where)},
          {"device", device_name(where)},
          {"numeric_class", numeric_class(where)}};
}

void run(worker_options options) {
  set_num_threads(options.threads);
  options.model.where = device_from_string(options.device);
  options.precision.choose(options.model.where);
  std::optional<autocast> mixed;
  if (auto type = options.precision.dtype(); type != dtype::f32) mixed.emplace(type);
  auto before_mib = resident_mib("VmRSS");
  auto model = make_compute_model(options.model);
  if (!options.weights.empty()) {
    auto saved = model.module->state_dict();
    saved.push_back({"inputs", model.inputs});
    saved.push_back({"labels", model.labels});
    for (auto& each : saved) each.value = each.value.to({});
    write_safetensors(options.weights, saved, {});
  }
  nlohmann::ordered_json line;
  if (options.losses > 0)
    line["losses"] = losses(model, options);
  else
    line = timed(model, options);
  auto is_on_cpu = options.model.where.type == device::kind::cpu;
  line["own_mib"] = is_on_cpu ? resident_mib("VmHWM") - before_mib
                              : static_cast<double>(memory_of(options.model.where).peak) / (1 << 20);
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace

void add_compute_worker(CLI::App& app) {
  auto options = std::make_shared<worker_options>();
  auto* command = app.add_subcommand("compute", "Train a model in this process");
  command->add_option("--model", options->model.name);
  command->add_option("--device", options->device);
  command->add_option("--batch", options->model.batch);
  command->add_option("--length", options->model.length);
  command->add_option("--threads", options->threads);
  command->add_option("--seconds", options->seconds);
  command->add_option("--dtype", options->precision.name);
  command->add_option("--losses", options->losses, "Print the losses of so many steps instead");
  command->add_option("--weights", options->weights, "Write the initial weights and the data there");
  command->add_flag_callback("--queue-each-kernel", [options] { options->how = queueing::each_kernel; });
  command->callback([options] { run(*options); });
}

}  // namespace troupe::bench
