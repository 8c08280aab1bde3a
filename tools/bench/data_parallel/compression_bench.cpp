#include <cstdio>
#include <filesystem>

#include "bench/benches.hpp"
#include "bench/data_parallel/bench_hooks.hpp"
#include "bench/measure/machine.hpp"
#include "bench/measure/measured_object.hpp"
#include "bench/measure/spread.hpp"
#include "bench/processes/this_program.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

struct compression_options {
  std::vector<std::string> hooks = bench_hook_names();
  std::string model = "mlp";
  std::int64_t batch = 32;
  int ranks = 4;
  double link_mbit = 100;
  int steps = 10;
  int rounds = 3;
  std::filesystem::path data;
  int epochs = 5;
  std::int64_t dense_steps = 117;  // a twentieth of five epochs with four processes
  double lr = 0.1;
  int seeds = 3;
  bool json = false;
};

nlohmann::json run_worker(const std::string& hook, const std::vector<std::string>& more,
                          const compression_options& options) {
  std::vector<std::string> command{this_program(), "bench", "worker",  "compression",
                                   "--hook",       hook,    "--ranks", std::to_string(options.ranks)};
  command.insert(command.end(), more.begin(), more.end());
  return last_object(command, {"OMP_WAIT_POLICY=passive"});
}

/// What one hook came to.
struct results {
  std::string hook;
  std::vector<double> link_step_s, memory_step_s;
  std::vector<double> rate;  ///< steps over the link, in those of the same round without a hook
  double gradient_mib = 0;
  std::vector<double> accuracy;      ///< by seed
  std::vector<double> points_below;  ///< how much lower it is than without a hook, in percent
};

void measure_speed(results& found, double plain_step_s, const compression_options& options) {
  auto seen = run_worker(found.hook,
                         {"--model", options.model, "--batch", std::to_string(options.batch), "--link-mbit",
                          std::to_string(options.link_mbit), "--steps", std::to_string(options.steps)},
                         options);
  found.gradient_mib = seen.at("gradient_mib");
  found.link_step_s.push_back(seen.at("link_step_s"));
  found.memory_step_s.push_back(seen.at("memory_step_s"));
  found.rate.push_back((plain_step_s > 0 ? plain_step_s : found.link_step_s.back()) /
                       found.link_step_s.back());
}

void measure_accuracy(results& found, int seed, const results& plain, const compression_options& options) {
  found.accuracy.push_back(
      run_worker(found.hook,
                 {"--data", options.data.string(), "--epochs", std::to_string(options.epochs),
                  "--dense-steps", std::to_string(options.dense_steps), "--lr", std::to_string(options.lr),
                  "--seed", std::to_string(seed)},
                 options)
          .at("accuracy"));
  found.points_below.push_back(100 * (plain.accuracy.back() - found.accuracy.back()));
}

void print(const results& found, const compression_options& options) {
  std::printf("%-9s", found.hook.c_str());
  if (!found.rate.empty())
    std::printf("   step over the link %s ms, %s of the plain rate   over memory %s ms",
                to_text(spread_of(found.link_step_s), 1e3, 0).c_str(),
                to_text(spread_of(found.rate), 1, 2).c_str(),
                to_text(spread_of(found.memory_step_s), 1e3, 0).c_str());
  if (!options.data.empty())
    std::printf("   accuracy %s %%, %s points below", to_text(spread_of(found.accuracy), 100, 2).c_str(),
                to_text(spread_of(found.points_below), 1, 2).c_str());
  std::printf("\n");
}

void print_json(const results& found, const compression_options& options, const machine& where) {
  nlohmann::ordered_json line{
      {"event", "compression"}, {"hook", found.hook}, {"ranks", options.ranks}, {"machine", to_json(where)}};
  if (!found.rate.empty()) {
    line["model"] = options.model;
    line["batch"] = options.batch;
    line["gradient_mib"] = found.gradient_mib;
    line["link_mbit"] = options.link_mbit;
    line["link_step_s"] = to_json(spread_of(found.link_step_s));
    line["memory_step_s"] = to_json(spread_of(found.memory_step_s));
    line["rate_over_plain"] = to_json(spread_of(found.rate));
  }
  if (!options.data.empty()) {
    line["epochs"] = options.epochs;
    line["dense_steps"] = options.dense_steps;
    line["accuracy"] = to_json(spread_of(found.accuracy));
    line["points_below_plain"] = to_json(spread_of(found.points_below));
  }
  std::printf("%s\n", line.dump().c_str());
}

int run(const compression_options& options) {
  if (options.hooks.front() != "none")
    throw bad_input("--hooks: expected none first, which the others are compared with, got " +
                    options.hooks.front());
  auto where = this_machine();
  if (!options.json) std::printf("machine    %s\n", to_text(where).c_str());
  std::vector<results> all;
  for (const auto& hook : options.hooks) all.emplace_back().hook = hook;
  for (int round = 0; round < options.rounds; ++round)
    for (auto& each : all)
      measure_speed(each, each.hook == "none" ? 0 : all.front().link_step_s.back(), options);
  for (int seed = 1; seed <= options.seeds && !options.data.empty(); ++seed)
    for (auto& each : all) measure_accuracy(each, seed, all.front(), options);
  for (const auto& each : all) {
    options.json ? print_json(each, options, where) : print(each, options);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

void add_compression_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<compression_options>();
  auto* command =
      app.add_subcommand("compression", "Compare data-parallel training with compressed gradients");
  command->add_option("--hooks", options->hooks, "none, which comes first, bf16, topk, powersgd; with commas")
      ->delimiter(',')
      ->check(CLI::IsMember(bench_hook_names()))
      ->capture_default_str();
  command->add_option("--model", options->model, "Whose steps are timed: gpt, mlp, cnn")
      ->check(CLI::IsMember({"gpt", "mlp", "cnn"}))
      ->capture_default_str();
  command->add_option("--batch", options->batch, "Of each process in these steps; 0: the model's own")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command->add_option("--ranks", options->ranks, "Processes")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command->add_option("--link-mbit", options->link_mbit, "Of each process's link, Mbit/s each way")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--steps", options->steps, "Of one timing")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Timings, all hooks in turn; 0: accuracy only")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command->add_option("--data", options->data,
                      "Fashion-MNIST's folder: trains an MLP with each hook as well");
  command->add_option("--epochs", options->epochs, "Of that")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--dense-steps", options->dense_steps, "Steps of that before topk and powersgd begin")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--seeds", options->seeds, "Trainings of that with each hook")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_option("--lr", options->lr, "Learning rate of that")->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object for each hook");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
