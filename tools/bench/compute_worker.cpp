// Trains one of the models for a while in this process, without actors, and prints one JSON object.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "compute_models.hpp"
#include "spread.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/ops/numeric_class.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/snapshot/safetensors.hpp"
#include "troupe/tensor/memory.hpp"
#include "workers.hpp"

namespace troupe::bench {
namespace {

struct worker_options {
  std::string model = "gpt";
  int threads = 1;
  double seconds = 8;
  std::string type = "f32";
  int losses = 0;
  std::string weights;
};

double seconds_of(const std::function<void()>& work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The best rate of a square matrix product that is large enough, and in the caches.
class product_rate {
 public:
  explicit product_rate(dtype type)
      : a_(cast(tensor::full({size, size}, 1), type)), b_(cast(tensor::full({size, size}, 0.5F), type)) {}
  void measure() {
    for (int i = 0; i < 5; ++i) best_s_ = std::min(best_s_, seconds_of([this] { matmul(a_, b_); }));
  }
  double flops_per_s() const { return 2.0 * size * size * size / best_s_; }

 private:
  static constexpr std::int64_t size = 1024;
  tensor a_, b_;
  double best_s_ = 1e9;
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

std::vector<double> losses(compute_model& model, int steps) {
  auto optimizer = model.optimizer(model.module->named_parameters());
  std::vector<double> result;
  for (int step = 0; step < steps; ++step)
    result.push_back(train_step(model, *optimizer, static_cast<std::uint64_t>(step)));
  return result;
}

nlohmann::ordered_json timed(compute_model& model, const worker_options& options, dtype type) {
  auto optimizer = model.optimizer(model.module->named_parameters());
  product_rate rate(type);
  rate.measure();
  std::uint64_t number = 0;
  for (; number < 3; ++number) train_step(model, *optimizer, number);
  std::vector<double> times;
  double total = 0;
  auto before = memory_of({}).num_from_system;
  while (total < options.seconds || times.size() < 5) {
    times.push_back(seconds_of([&] { train_step(model, *optimizer, number++); }));
    total += times.back();
    if (times.size() % 16 == 0) rate.measure();
  }
  auto allocated = memory_of({}).num_from_system - before;
  rate.measure();
  auto step_s = spread_of(times).median;
  return {{model.unit + "_per_s", static_cast<double>(model.items) / step_s},
          {"step_s", step_s},
          {"steps", times.size()},
          {"product_gflops_per_s", rate.flops_per_s() / 1e9},
          {"of_product_rate", model.step_flops / rate.flops_per_s() / step_s},
          {"allocations_after_warm_up", allocated},
          {"peak_mib", resident_mib("VmHWM")},
          {"tensors_peak_mib", static_cast<double>(memory_of({}).peak) / (1 << 20)},
          {"numeric_class", numeric_class()}};
}

void run(const worker_options& options) {
  set_num_threads(options.threads);
  if (options.type != "f32" && options.type != "bf16")
    throw bad_input("--dtype " + options.type + ": expected f32 or bf16");
  auto type = options.type == "f32" ? dtype::f32 : dtype::bf16;
  std::optional<autocast> mixed;
  if (type != dtype::f32) mixed.emplace(type);
  auto before_mib = resident_mib("VmRSS");
  auto model = make_compute_model(options.model);
  if (!options.weights.empty()) {
    auto saved = model.module->state_dict();
    saved.push_back({"inputs", model.inputs});
    saved.push_back({"labels", model.labels});
    write_safetensors(options.weights, saved, {});
  }
  nlohmann::ordered_json line;
  if (options.losses > 0)
    line["losses"] = losses(model, options.losses);
  else
    line = timed(model, options, type);
  line["own_mib"] = resident_mib("VmHWM") - before_mib;
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace

void add_compute_worker(CLI::App& app) {
  auto options = std::make_shared<worker_options>();
  auto* command = app.add_subcommand("compute", "Train a model in this process");
  command->add_option("--model", options->model);
  command->add_option("--threads", options->threads);
  command->add_option("--seconds", options->seconds);
  command->add_option("--dtype", options->type);
  command->add_option("--losses", options->losses, "Print the losses of so many steps instead");
  command->add_option("--weights", options->weights, "Write the initial weights and the data there");
  command->callback([options] { run(*options); });
}

}  // namespace troupe::bench
