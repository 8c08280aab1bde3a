#include "bench/compute/compute_job.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/compute/compute_models.hpp"
#include "bench/compute/device_rates.hpp"
#include "bench/compute/fma_rate.hpp"
#include "bench/measure/spread.hpp"
#include "troupe/autograd/autocast.hpp"
#include "troupe/autograd/captured_pass.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/numeric_class.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/tensor/devices.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::bench {
namespace {

/// Trains a model, step after step. On a GPU forward and backward pass are recorded in the second step and
/// replayed as a CUDA graph from then on, unless each kernel is to be queued by itself.
class training {
 public:
  /// The model outlives it.
  training(compute_model& model, const compute_job& job)
      : model_(model), optimizer_(model.optimizer(model.module->named_parameters())) {
    auto where = model.inputs.device();
    if (job.queue_each_kernel || where.type == device::kind::cpu) return;
    auto first = batch_of(model, 0);
    batch_ = {first.inputs.clone(), first.labels.clone()};
    pass_.emplace(
        where, [this] { pass(); }, model.module->parameters());
  }

  /// The next step, from number 0; returns its mean loss.
  double step() {
    if (!pass_) return train_step(model_, *optimizer_, number_++);
    auto next = batch_of(model_, number_);
    batch_.inputs.copy_from(next.inputs);
    batch_.labels.copy_from(next.labels);
    pass_->run();
    optimizer_->apply(number_++);
    return loss_sum_.to({}).values<float>()[0] / static_cast<double>(batch_.labels.num_elements());
  }

 private:
  void pass() {
    memory_scope counted(memory_category::activations);
    auto result = loss_of(model_, batch_, [this](const variable& x) { return model_.module->forward(x); });
    result.loss.backward();
    loss_sum_ = result.device_loss_sum;
  }

  compute_model& model_;
  std::unique_ptr<optim::optimizer_state> optimizer_;
  std::uint64_t number_ = 0;
  // What the recorded pass reads and writes.
  compute_batch batch_;
  tensor loss_sum_;
  std::optional<captured_pass> pass_;
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

std::vector<double> losses(compute_model& model, const compute_job& job) {
  training trained(model, job);
  std::vector<double> result;
  for (int step = 0; step < job.losses; ++step) result.push_back(trained.step());
  return result;
}

/// The least that a step moves. The weights are read in both passes and by the optimizer, gradients are
/// written and read, Adam's two moments and the weights are read and written. Activations are written once
/// and read once.
double step_bytes(compute_model& model, device where) {
  double parameters = 0;
  for (const auto* each : model.module->parameters())
    parameters += static_cast<double>(each->value().size_bytes());
  auto activations =
      memory_of(where).peak_by_category[static_cast<std::size_t>(memory_category::activations)];
  return 10 * parameters + 2 * static_cast<double>(activations);
}

bool has_fma_rate(const compute_job& job, device where) {
  return where.type == device::kind::cpu && job.dtype == "f32";
}

nlohmann::ordered_json timed(compute_model& model, const compute_job& job) {
  auto where = model.inputs.device();
  training trained(model, job);
  product_rate rate(bench_precision{job.dtype}.dtype(), where);
  rate.measure();
  auto copied_per_s = copy_bytes_per_s(where);
  for (int step = 0; step < 3; ++step) trained.step();
  std::vector<double> times, fma_rates, of_fma_rate;
  double total = 0;
  auto before = memory_of(where).num_from_system;
  while (total < job.seconds || times.size() < 5) {
    times.push_back(seconds_of(where, [&] { trained.step(); }));
    total += times.back();
    if (times.size() % 16 == 0) rate.measure();
    if (!has_fma_rate(job, where)) continue;
    fma_rates.push_back(fma_flops_per_s(job.threads, times.back()));  // as long as the step, beside it
    of_fma_rate.push_back(model.step_flops / times.back() / fma_rates.back());
  }
  auto allocated = memory_of(where).num_from_system - before;
  rate.measure();
  auto step_s = median_of(times);
  nlohmann::ordered_json line{{model.unit + "_per_s", static_cast<double>(model.items) / step_s},
                              {"mean_step_s", total / static_cast<double>(times.size())},
                              {"product_gflops_per_s", rate.flops_per_s() / 1e9},
                              {"of_product_rate", model.step_flops / rate.flops_per_s() / step_s},
                              {"copy_gb_per_s", copied_per_s / 1e9},
                              {"of_copy_rate", step_bytes(model, where) / copied_per_s / step_s},
                              {"allocations_after_warm_up", allocated},
                              {"device", device_name(where)},
                              {"numeric_class", numeric_class(where)}};
  if (!fma_rates.empty()) {
    line["of_fma_rate"] = median_of(of_fma_rate);
    line["fma_gflops_per_s"] = median_of(fma_rates) / 1e9;
  }
  return line;
}

/// The initial weights and the data, for torch_compute.py.
void write_weights(const std::string& file, const compute_model& model) {
  auto saved = model.module->state_dict();
  saved.push_back({"inputs", model.inputs});
  saved.push_back({"labels", model.labels});
  for (auto& each : saved) each.value = each.value.to({});
  write_safetensors(file, saved, {});
}

}  // namespace

void train(const compute_job& job) {
  auto where = device_from_string(job.device);
  bench_precision precision{job.dtype};
  set_num_threads(job.threads);
  precision.choose(where);
  std::optional<autocast> mixed;
  if (auto type = precision.dtype(); type != dtype::f32) mixed.emplace(type);
  auto before_mib = resident_mib("VmRSS");
  auto model = make_compute_model({job.model, where, job.batch, job.length});
  if (!job.weights.empty()) write_weights(job.weights, model);
  nlohmann::ordered_json line;
  if (job.losses > 0)
    line["losses"] = losses(model, job);
  else
    line = timed(model, job);
  line["own_mib"] = where.type == device::kind::cpu ? resident_mib("VmHWM") - before_mib
                                                    : static_cast<double>(memory_of(where).peak) / (1 << 20);
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace troupe::bench
