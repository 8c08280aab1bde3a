// troupe bench compression: starts jobs whose processes train with DataParallel and a communication hook, and
// compares the hooks.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>

#include "bench/benches.hpp"
#include "bench/compute/compute_models.hpp"
#include "bench/data_parallel/throttled_backend.hpp"
#include "bench/measure/report.hpp"
#include "bench/measure/spread.hpp"
#include "bench/processes/bench_process.hpp"
#include "bench/processes/launched_job.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/autograd/grad_mode.hpp"
#include "troupe/data/data_loader.hpp"
#include "troupe/data/formats/fashion_mnist.hpp"
#include "troupe/data_parallel/data_parallel.hpp"
#include "troupe/data_parallel/hooks/half_precision_gradients.hpp"
#include "troupe/data_parallel/hooks/power_sgd.hpp"
#include "troupe/data_parallel/hooks/top_k_gradients.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/cross_entropy.hpp"
#include "troupe/nn/flatten.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/to_float.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/optim/sgd.hpp"

namespace troupe::bench {
namespace {

/// What one measurement trains, in processes of a job.
struct compression_job {
  std::string hook = "none";  ///< or bf16, topk (1 % of the elements), powersgd (rank 4)
  int ranks = 4;
  // Speed:
  std::string model = "mlp";
  std::int64_t batch = 32;  ///< of each process; 0: the model's own
  double link_mbit = 100;   ///< of each process's link, Mbit/s each way
  int steps = 10;           ///< steps in one timing
  // Accuracy on Fashion-MNIST:
  std::string data;  ///< its folder; empty: measure the speed
  int epochs = 5;
  std::int64_t dense_steps = 117;  ///< before topk and powersgd begin: a twentieth of 5 epochs on 4 ranks
  double lr = 0.1;
  std::uint64_t seed = 1;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(compression_job, hook, ranks, model, batch, link_mbit, steps,
                                                data, epochs, dense_steps, lr, seed)

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
  return median_of(std::move(times));
}

nlohmann::ordered_json measure_speed(const compression_job& job, actors::process::process& self) {
  ucx_groups groups(self);
  auto over_slow_link = groups.make("link", over_link(self.world_size(), job.link_mbit * 1e6 / 8));
  auto over_memory = groups.make("memory");
  auto model = make_compute_model({.name = job.model, .batch = job.batch});
  auto link_step_s = time_steps(model, *over_slow_link, job);
  return {{"gradient_mib", 4.0 * static_cast<double>(model.module->num_parameters()) / (1 << 20)},
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
nlohmann::ordered_json measure_accuracy(const compression_job& job, actors::process::process& self) {
  ucx_groups groups(self);
  auto group = groups.make("memory");
  nn::Sequential model(nn::ToFloat(), nn::Flatten(), nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 128),
                       nn::ReLU(), nn::Linear(128, 10));
  model.materialize(job.seed);
  DataParallel replicated(model, *group);
  replicated.register_comm_hook(make_hook(job.hook, job.dense_steps));
  constexpr std::int64_t batch = 32;
  DataLoader loader(
      fashion_mnist(job.data, data_split::train),
      {.batch = batch, .num_replicas = self.world_size(), .replica = self.rank(), .seed = job.seed});
  auto last = static_cast<std::uint64_t>(loader.num_batches() * job.epochs * 4 / 5);
  // topk's hook has the momentum in it.
  auto optimizer = optim::SGD(
      {.lr = job.lr, .momentum = job.hook == "topk" ? 0 : momentum, .schedule = [last](std::uint64_t step) {
         return step < last ? 1.0 : 0.1;
       }})(model.named_parameters());
  std::uint64_t step = 0;
  for (int epoch = 0; epoch < job.epochs; ++epoch)
    for (const auto& [samples, labels] : loader) {
      replicated.backward(nn::CrossEntropy()(replicated.forward({samples}), labels, 1.0 / batch).loss);
      optimizer->apply(step++);
    }
  auto test = fashion_mnist(job.data, data_split::test);
  return {{"accuracy", self.rank() == 0 ? accuracy_of(model, *test) : 0}};
}

void train(const compression_job& job) {
  auto self = start_launched_process();
  set_num_threads(1);
  auto line = job.data.empty() ? measure_speed(job, *self) : measure_accuracy(job, *self);
  if (self->rank() == 0) std::printf("%s\n", line.dump().c_str());
}

struct compression_options {
  std::vector<std::string> hooks = {"none", "bf16", "topk", "powersgd"};
  compression_job each;  ///< but for the hook and the seed
  std::string data;
  int rounds = 3;
  int seeds = 3;
  bool json = false;
};

/// What one hook came to, over rounds or seeds.
struct hook_results {
  compression_job job;
  measurements values;
  double gradient_mib = 0;
};

nlohmann::json run_job(const compression_job& job) {
  return run_launched_for_object(passively_waiting(worker_command("compression", job)), job.ranks);
}

/// `plain`: the same round without a hook, which may be `results` itself.
void measure_speed(hook_results& results, hook_results& plain) {
  auto seen = run_job(results.job);
  results.gradient_mib = seen.at("gradient_mib");
  for (const char* name : {"link_step_s", "memory_step_s"}) results.values[name].push_back(seen.at(name));
  results.values["rate_over_plain"].push_back(plain.values["link_step_s"].back() /
                                              results.values["link_step_s"].back());
}

void measure_accuracy(hook_results& results, hook_results& plain, const std::string& data, int seed) {
  auto job = results.job;
  job.data = data;
  job.seed = static_cast<std::uint64_t>(seed);
  results.values["accuracy"].push_back(run_job(job).at("accuracy"));
  results.values["points_below_plain"].push_back(
      100 * (plain.values["accuracy"].back() - results.values["accuracy"].back()));
}

void print(const hook_results& results, const compression_options& options, report& output) {
  const auto& job = results.job;
  nlohmann::ordered_json line{{"hook", job.hook}, {"ranks", job.ranks}};
  columns shown{{"hook", 8}};
  if (options.rounds > 0) {
    line.update({{"model", job.model},
                 {"batch", job.batch},
                 {"gradient_mib", results.gradient_mib},
                 {"link_mbit", job.link_mbit}});
    shown.insert(shown.end(), {{"link_step_s"}, {"rate_over_plain"}, {"memory_step_s"}});
  }
  if (!options.data.empty()) {
    line.update({{"epochs", job.epochs}, {"dense_steps", job.dense_steps}});
    shown.insert(shown.end(), {{"accuracy"}, {"points_below_plain"}});
  }
  add_spreads(results.values, line);
  output.add(shown, line);
}

void run(const compression_options& options) {
  if (options.hooks.front() != "none")
    throw bad_input("--hooks: expected none first, which the others are compared with, got " +
                    options.hooks.front());
  if (!options.data.empty()) fashion_mnist(options.data, data_split::train);  // refused before the timings
  report output("compression", options.json);
  std::vector<hook_results> all;
  for (const auto& hook : options.hooks) {
    all.push_back({options.each, {}, 0});
    all.back().job.hook = hook;
  }
  for (int round = 0; round < options.rounds; ++round)
    for (auto& each : all) measure_speed(each, all.front());
  for (int seed = 1; seed <= options.seeds && !options.data.empty(); ++seed)
    for (auto& each : all) measure_accuracy(each, all.front(), options.data, seed);
  for (const auto& each : all) print(each, options, output);
}

}  // namespace

void add_compression_bench(const bench_commands& to) {
  auto options = std::make_shared<compression_options>();
  auto& each = options->each;
  auto& command =
      *to.bench.add_subcommand("compression", "Compare data-parallel training with compressed gradients");
  command.add_option("--hooks", options->hooks, "none, which comes first, bf16, topk, powersgd; with commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"none", "bf16", "topk", "powersgd"}));
  command.add_option("--model", each.model, "Whose steps are timed: gpt, mlp, cnn")
      ->check(CLI::IsMember({"gpt", "mlp", "cnn"}));
  command.add_option("--batch", each.batch, "Of each process in these steps; 0: the model's own")
      ->check(CLI::Range(0, 1 << 20));
  command.add_option("--ranks", each.ranks, "Processes")->check(CLI::Range(1, 64));
  command.add_option("--link-mbit", each.link_mbit, "Of each process's link, Mbit/s each way")
      ->check(CLI::Range(1e-3, 1e9));
  command.add_option("--steps", each.steps, "Of one timing")->check(CLI::Range(1, 1000));
  command.add_option("--rounds", options->rounds, "Timings, all hooks in turn; 0: accuracy only")
      ->check(CLI::Range(0, 1000));
  command.add_option("--data", options->data, "Fashion-MNIST's folder: trains an MLP with each hook as well");
  command.add_option("--epochs", each.epochs, "Of that")->check(CLI::Range(1, 1000));
  command.add_option("--dense-steps", each.dense_steps, "Steps of that before topk and powersgd begin")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--seeds", options->seeds, "Trainings of that with each hook")
      ->check(CLI::Range(1, 100));
  command.add_option("--lr", each.lr, "Learning rate of that");
  command.add_flag("--json", options->json, "One JSON object for each hook");
  command.callback([options] { run(*options); });
  add_worker(to, "compression", [](const nlohmann::json& job) { train(job.get<compression_job>()); });
}

}  // namespace troupe::bench
