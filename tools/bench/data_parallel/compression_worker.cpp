// Trains with DataParallel and a communication hook in several processes, and prints one JSON object.
#include <chrono>
#include <cstdio>

#include "bench/benches.hpp"
#include "bench/compute/compute_models.hpp"
#include "bench/data_parallel/data_parallel_jobs.hpp"
#include "bench/data_parallel/throttled_backend.hpp"
#include "bench/measure/arguments.hpp"
#include "bench/measure/spread.hpp"
#include "bench/processes/forked_ranks.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/data/distributed_sampler.hpp"
#include "troupe/data/fashion_mnist.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/to_float.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/optim/sgd.hpp"
#include "troupe/parallel/compression/half_precision_gradients.hpp"
#include "troupe/parallel/compression/power_sgd.hpp"
#include "troupe/parallel/compression/top_k_gradients.hpp"
#include "troupe/parallel/data_parallel.hpp"

namespace troupe::bench {
namespace {

constexpr double momentum = 0.9;

std::shared_ptr<comm_hook> make_hook(const std::string& name, std::int64_t dense_steps) {
  if (name == "bf16") return std::make_shared<half_precision_gradients>();
  if (name == "topk")
    return std::make_shared<top_k_gradients>(
        top_k_gradients_options{.ratio = 0.01, .momentum = momentum, .dense_steps = dense_steps});
  if (name == "powersgd")
    return std::make_shared<power_sgd>(power_sgd_options{.rank = 4, .dense_steps = dense_steps});
  return nullptr;
}

/// Median seconds of a step on rank 0; all ranks make as many.
double time_steps(compute_model& model, communicator& group, const compression_job& job) {
  using clock = std::chrono::steady_clock;
  DataParallel replicated(*model.module, group);
  replicated.register_comm_hook(make_hook(job.hook, 0));
  auto optimizer = optim::SGD({.lr = 1e-4})(model.module->named_parameters());
  std::vector<double> times;
  for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(job.steps) + 2; ++step) {
    auto begin = clock::now();
    replicated.backward(
        loss_of(model, step, [&replicated](const variable& x) { return replicated.forward(x); }).loss);
    optimizer->apply(step);
    if (step >= 2) times.push_back(std::chrono::duration<double>(clock::now() - begin).count());
  }
  return spread_of(times).median;
}

nlohmann::ordered_json measure_speed(const compression_job& job, forked_rank& self) {
  communicator_options slow;
  auto bytes_per_second = job.link_mbit * 1e6 / 8;
  slow.decorate = [&self, bytes_per_second](std::unique_ptr<collective_backend> below) {
    return std::make_unique<throttled_backend>(std::move(below), self.size(), bytes_per_second);
  };
  auto over_link = self.make_group("link", slow), over_memory = self.make_group("memory");
  auto model = make_compute_model({.name = job.model, .batch = job.batch});
  auto link_step_s = time_steps(model, *over_link, job);
  return {{"hook", job.hook},
          {"gradient_mib", 4.0 * static_cast<double>(model.module->num_parameters()) / (1 << 20)},
          {"link_step_s", link_step_s},
          {"memory_step_s", time_steps(model, *over_memory, job)}};
}

double accuracy_of(nn::Module& model, dataset& test) {
  no_grad off;
  model.eval();
  std::int64_t correct = 0, batch = 500;
  for (std::int64_t first = 0; first < test.num_samples(); first += batch) {
    auto found = argmax(model.forward({test.samples().rows(first, batch)}).value, {.axes = {-1}});
    auto labels = test.labels().rows(first, batch);
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i)
      correct += found.values<std::int64_t>()[i] == labels.values<std::uint8_t>()[i];
  }
  return static_cast<double>(correct) / static_cast<double>(test.num_samples());
}

/// Fashion-MNIST, 784-256-128-10, 32 samples for each rank in a step, a learning rate that falls to a tenth
/// for the last fifth of the steps.
nlohmann::ordered_json measure_accuracy(const compression_job& job, forked_rank& self) {
  auto group = self.make_group("memory");
  nn::Sequential model(nn::ToFloat(), nn::Flatten(), nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128),
                       nn::ReLU(), nn::Linear(128, 10));
  model.materialize(job.seed);
  DataParallel replicated(model, *group);
  replicated.register_comm_hook(make_hook(job.hook, job.dense_steps));
  constexpr std::int64_t batch = 32;
  ShardedLoader loader(
      fashion_mnist(job.data, data_split::train),
      {.num_samples = 60000, .num_replicas = self.size(), .replica = self.rank(), .seed = job.seed}, {batch});
  auto last = static_cast<std::uint64_t>(loader.num_batches() * job.epochs * 4 / 5);
  // topk's hook has the momentum in it.
  auto optimizer = optim::SGD(
      {.lr = job.lr, .momentum = job.hook == "topk" ? 0 : momentum, .schedule = [last](std::uint64_t step) {
         return step < last ? 1.0 : 0.1;
       }})(model.named_parameters());
  std::uint64_t step = 0;
  for (int epoch = 0; epoch < job.epochs; ++epoch) {
    loader.set_epoch(static_cast<std::uint64_t>(epoch));
    for (std::int64_t i = 0; i < loader.num_batches(); ++i, ++step) {
      auto next = loader.batch(i);
      replicated.backward(
          nn::CrossEntropy()(replicated.forward({next.samples}), next.labels, 1.0 / batch).loss);
      optimizer->apply(step);
    }
  }
  auto test = fashion_mnist(job.data, data_split::test);
  return {
      {"hook", job.hook}, {"steps", step}, {"accuracy", self.rank() == 0 ? accuracy_of(model, *test) : 0}};
}

void run(const compression_job& job) {
  run_forked(job.ranks, [&job](forked_rank& self) {
    set_num_threads(1);
    auto line = job.data.empty() ? measure_speed(job, self) : measure_accuracy(job, self);
    if (self.rank() == 0) std::printf("%s\n", line.dump().c_str());
  });
}

}  // namespace

void add_compression_worker(CLI::App& workers) {
  add_worker(workers, "compression", [](const nlohmann::json& job) { run(job.get<compression_job>()); });
}

}  // namespace troupe::bench
