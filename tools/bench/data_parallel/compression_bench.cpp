#include <map>

#include "bench/benches.hpp"
#include "bench/data_parallel/data_parallel_jobs.hpp"
#include "bench/measure/arguments.hpp"
#include "bench/measure/report.hpp"
#include "bench/processes/subprocess.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

struct compression_options {
  std::vector<std::string> hooks = {"none", "bf16", "topk", "powersgd"};
  compression_job each;  ///< but for the hook and the seed
  std::string data;
  int rounds = 3;
  int seeds = 3;
  bool json = false;
};

/// What one hook came to: of each round or seed, by the names in the result.
struct results {
  compression_job job;
  std::map<std::string, std::vector<double>> values;
  double gradient_mib = 0;
};

nlohmann::json run_job(const compression_job& job) {
  return run_for_object(worker_command("compression", job), {"OMP_WAIT_POLICY=passive"});
}

/// `plain`: the same round without a hook, which may be `found` itself.
void measure_speed(results& found, results& plain) {
  auto seen = run_job(found.job);
  found.gradient_mib = seen.at("gradient_mib");
  for (const char* name : {"link_step_s", "memory_step_s"}) found.values[name].push_back(seen.at(name));
  found.values["rate_over_plain"].push_back(plain.values["link_step_s"].back() /
                                            found.values["link_step_s"].back());
}

void measure_accuracy(results& found, results& plain, const std::string& data, int seed) {
  auto job = found.job;
  job.data = data;
  job.seed = static_cast<std::uint64_t>(seed);
  found.values["accuracy"].push_back(run_job(job).at("accuracy"));
  found.values["points_below_plain"].push_back(
      100 * (plain.values["accuracy"].back() - found.values["accuracy"].back()));
}

table columns(const compression_options& options) {
  table shown{{{"hook", {"hook"}, of_number}}};
  if (options.rounds > 0) {
    shown.columns.push_back({"step over the link, ms", {"link_step_s"}, of_spread, 0, 1e3});
    shown.columns.push_back({"of the plain rate", {"rate_over_plain"}, 20});
    shown.columns.push_back({"step over memory, ms", {"memory_step_s"}, 24, 0, 1e3});
  }
  if (options.data.empty()) return shown;
  shown.columns.push_back({"accuracy %", {"accuracy"}, of_spread, 2, 100});
  shown.columns.push_back({"points below plain", {"points_below_plain"}, 20});
  return shown;
}

void print(const results& found, const compression_options& options, report& output) {
  const auto& job = found.job;
  nlohmann::ordered_json line{{"hook", job.hook}, {"ranks", job.ranks}};
  if (options.rounds > 0)
    line.update({{"model", job.model},
                 {"batch", job.batch},
                 {"gradient_mib", found.gradient_mib},
                 {"link_mbit", job.link_mbit}});
  if (!options.data.empty()) line.update({{"epochs", job.epochs}, {"dense_steps", job.dense_steps}});
  for (const auto& [name, values] : found.values) line[name] = spread_json(values);
  output.add(columns(options), line);
}

void run(const compression_options& options) {
  if (options.hooks.front() != "none")
    throw bad_input("--hooks: expected none first, which the others are compared with, got " +
                    options.hooks.front());
  report output("compression", options.json);
  std::vector<results> all;
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

void add_compression_bench(CLI::App& app) {
  auto options = std::make_shared<compression_options>();
  auto& each = options->each;
  subcommand command(app, "compression", "Compare data-parallel training with compressed gradients");
  command.add("--hooks", options->hooks, "none, which comes first, bf16, topk, powersgd; with commas",
              one_of({"none", "bf16", "topk", "powersgd"}));
  command.add("--model", each.model, "Whose steps are timed: gpt, mlp, cnn", one_of({"gpt", "mlp", "cnn"}));
  command.add("--batch", each.batch, "Of each process in these steps; 0: the model's own",
              between(0, 1 << 20));
  command.add("--ranks", each.ranks, "Processes", between(1, 64));
  command.add("--link-mbit", each.link_mbit, "Of each process's link, Mbit/s each way", between(1e-3, 1e9));
  command.add("--steps", each.steps, "Of one timing", between(1, 1000));
  command.add("--rounds", options->rounds, "Timings, all hooks in turn; 0: accuracy only", between(0, 1000));
  command.add("--data", options->data, "Fashion-MNIST's folder: trains an MLP with each hook as well");
  command.add("--epochs", each.epochs, "Of that", between(1, 1000));
  command.add("--dense-steps", each.dense_steps, "Steps of that before topk and powersgd begin",
              between(0, 1e12));
  command.add("--seeds", options->seeds, "Trainings of that with each hook", between(1, 100));
  command.add("--lr", each.lr, "Learning rate of that");
  command.add_flag("--json", options->json, "One JSON object for each hook");
  command.on_run([options] { run(*options); });
}

}  // namespace troupe::bench
