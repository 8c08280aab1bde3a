#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <numeric>

#include "bench/benches.hpp"
#include "bench/measure/machine.hpp"
#include "bench/measure/spread.hpp"
#include "bench/peers/torchrun_peer.hpp"
#include "bench/processes/this_program.hpp"
#include "bench/recovery/killed_run.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

struct recovery_options {
  kill_plan_options kills;
  int num_processes = 4;
  std::string ranks = "all";
  std::vector<std::uint64_t> steps_between = {20, 60};
  std::uint64_t snapshot_every = 0;
  std::string program;
  bool fashion_mnist = false;
  torchrun_options torchrun;
  bool json = false;
};

struct phase {
  const char* name;
  double recovery_report::*seconds;
};
constexpr phase phases[] = {
    {"detect", &recovery_report::detect_s},   {"fence", &recovery_report::fence_s},
    {"quiesce", &recovery_report::quiesce_s}, {"respawn", &recovery_report::respawn_s},
    {"restore", &recovery_report::restore_s}, {"rebuild", &recovery_report::rebuild_s},
    {"replay", &recovery_report::replay_s},   {"total", &recovery_report::total_s}};

/// Everything that was measured, over all rounds.
struct recovery_results {
  machine where;
  std::vector<measured_kill> kills;
  int num_unplanned = 0;
  int num_started = 0;
  std::uint64_t steps = 0;  ///< of each job
  double step_s = 0;        ///< wall time of a step of the undisturbed job, its start included
  std::string undisturbed_sha256;
  bool equal = true;
  std::vector<double> torchrun_s;  ///< of the runs that recovered
  int num_torchrun_failed = 0;     ///< the others
};

std::vector<int> ranks_from(const std::string& text, int num_processes) {
  std::vector<int> ranks(static_cast<std::size_t>(num_processes));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (text == "all") return ranks;
  ranks.clear();
  for (const auto& word : CLI::detail::split(text, ',')) {
    int rank = -1;
    if (!CLI::detail::lexical_cast(word, rank) || rank < 0 || rank >= num_processes)
      throw bad_input("--ranks " + text + ": '" + word +
                      "' is no rank, expected 'all' or numbers from 0 to " +
                      std::to_string(num_processes - 1) + " with commas between");
    ranks.push_back(rank);
  }
  return ranks;
}

void check(recovery_options& options) {
  options.kills.ranks = ranks_from(options.ranks, options.num_processes);
  options.kills.least_steps_between = options.steps_between[0];
  options.kills.most_steps_between = options.steps_between[1];
  if (options.steps_between[0] < 1 || options.steps_between[0] > options.steps_between[1])
    throw bad_input(
        "--steps-between wants the fewest and the most steps between two kills, from 1 on, for example 20 "
        "60");
  if (options.fashion_mnist && !options.program.empty())
    throw bad_input("--fashion-mnist and --program exclude each other");
  if (!options.torchrun.root.empty() && !std::filesystem::is_directory(options.torchrun.root))
    throw bad_input("--torchrun " + options.torchrun.root.string() +
                    ": there is no such folder, expected the root of a system with PyTorch");
  if (!options.torchrun.root.empty() && options.torchrun.script.empty())
    throw bad_input(
        "--torchrun wants --torchrun-script, the path in there of a script that kills a worker: see "
        "tools/bench/README.md");
}

/// The program without the number of steps. Many epochs, so that steps decide.
std::vector<std::string> command_of(const recovery_options& options, std::uint64_t steps) {
  std::vector<std::string> command = {this_program(), "bench", "worker", "train"};
  if (options.fashion_mnist)
    command = {(std::filesystem::path(this_program()).parent_path() / "fashion_mnist").string()};
  if (!options.program.empty()) command = {options.program};
  for (const auto& more :
       {std::string("--json"), std::string("--epochs"), std::string("100000"), std::string("--steps"),
        std::to_string(steps), std::string("--snapshot-every"), std::to_string(options.snapshot_every)})
    command.push_back(more);
  return command;
}

nlohmann::ordered_json to_json(const measured_kill& one) {
  nlohmann::ordered_json line{{"bench", "recovery"},
                              {"event", "kill"},
                              {"rank", one.rank},
                              {"step", one.step},
                              {"rolled_back", one.rolled_back},
                              {"cause", one.report.loss.cause}};
  for (const auto& [name, seconds] : phases) line[std::string(name) + "_s"] = one.report.*seconds;
  return line;
}

/// The kills shared out over rounds, one round for each run of the peer: what is compared is measured side by
/// side.
std::vector<std::vector<planned_kill>> rounds_of(const recovery_options& options) {
  int rounds = options.torchrun.root.empty()
                   ? 1
                   : std::max(1, std::min(options.torchrun.runs, options.kills.num_kills));
  std::vector<std::vector<planned_kill>> made;
  for (int round = 0; round < rounds; ++round) {
    auto share = options.kills;
    share.num_kills = (options.kills.num_kills + round) / rounds;
    share.seed += static_cast<std::uint64_t>(round);
    std::rotate(share.ranks.begin(), share.ranks.begin() + round % static_cast<int>(share.ranks.size()),
                share.ranks.end());
    made.push_back(plan_kills(share));
  }
  return made;
}

std::uint64_t steps_for(const std::vector<std::vector<planned_kill>>& rounds,
                        const recovery_options& options) {
  std::uint64_t last = 0;
  for (const auto& round : rounds)
    if (!round.empty()) last = std::max(last, round.back().step);
  return last + options.kills.most_steps_between;
}

void add_round(recovery_results& results, const run_outcome& round, bool json) {
  for (const auto& one : round.kills)
    if (json) std::cout << to_json(one).dump() << std::endl;
  results.kills.insert(results.kills.end(), round.kills.begin(), round.kills.end());
  results.num_unplanned += round.num_unplanned;
  results.num_started += round.num_started;
  results.equal = results.equal && round.weights_sha256 == results.undisturbed_sha256;
}

void add_torchrun(recovery_results& results, const recovery_options& options) {
  if (auto seconds = run_torchrun(options.torchrun, options.num_processes))
    results.torchrun_s.push_back(*seconds);
  else
    ++results.num_torchrun_failed;
}

recovery_results measure(const recovery_options& options) {
  recovery_results results;
  results.where = this_machine();
  auto rounds = rounds_of(options);
  results.steps = steps_for(rounds, options);
  auto command = command_of(options, results.steps);
  auto undisturbed = killed_run(command, options.num_processes, {}).run();
  results.undisturbed_sha256 = undisturbed.weights_sha256;
  results.step_s = undisturbed.seconds / static_cast<double>(results.steps);
  for (const auto& round : rounds) {
    add_round(results, killed_run(command, options.num_processes, round).run(), options.json);
    if (!options.torchrun.root.empty()) add_torchrun(results, options);
  }
  return results;
}

spread spread_of_phase(const recovery_results& results, double recovery_report::*seconds) {
  std::vector<double> values;
  for (const auto& one : results.kills) values.push_back(one.report.*seconds);
  return spread_of(values);
}

spread spread_of_rollbacks(const recovery_results& results) {
  std::vector<double> values;
  for (const auto& one : results.kills) values.push_back(static_cast<double>(one.rolled_back));
  return spread_of(values);
}

double ratio_to_torchrun(const recovery_results& results) {
  return spread_of(results.torchrun_s).median / spread_of_phase(results, &recovery_report::total_s).median;
}

bool all_good(const recovery_results& results, const recovery_options& options) {
  return results.equal && std::cmp_equal(results.kills.size(), options.kills.num_kills);
}

void print_json(const recovery_results& results, const recovery_options& options) {
  nlohmann::ordered_json line{{"bench", "recovery"},
                              {"event", "summary"},
                              {"machine", to_json(results.where)},
                              {"nproc", options.num_processes},
                              {"program", command_of(options, results.steps)},
                              {"kills_wanted", options.kills.num_kills},
                              {"kills", results.kills.size()},
                              {"unplanned_recoveries", results.num_unplanned},
                              {"processes_started", results.num_started},
                              {"snapshot_every", options.snapshot_every},
                              {"steps_rolled_back", to_json(spread_of_rollbacks(results))},
                              {"steps", results.steps},
                              {"undisturbed_s_per_step", results.step_s}};
  for (const auto& [name, seconds] : phases)
    line[std::string(name) + "_s"] = to_json(spread_of_phase(results, seconds));
  line["weights_equal"] = results.equal;
  line["weights_sha256"] = results.undisturbed_sha256;
  line["torchrun_s"] = nullptr;
  line["torchrun_failed"] = results.num_torchrun_failed;
  if (!results.torchrun_s.empty()) {
    line["torchrun_s"] = to_json(spread_of(results.torchrun_s));
    line["torchrun_ratio"] = ratio_to_torchrun(results);
  }
  std::cout << line.dump() << std::endl;
}

void print_phases(const recovery_results& results) {
  std::printf("\n%-10s %10s %10s %10s %10s\n", "phase", "median ms", "worst ms", "p25 ms", "p75 ms");
  for (const auto& [name, seconds] : phases) {
    auto of = spread_of_phase(results, seconds);
    std::printf("%-10s %10.1f %10.1f %10.1f %10.1f\n", name, 1e3 * of.median, 1e3 * of.largest,
                1e3 * of.lower_quartile, 1e3 * of.upper_quartile);
  }
}

void print_torchrun(const recovery_results& results) {
  if (results.torchrun_s.empty() && results.num_torchrun_failed == 0)
    return static_cast<void>(std::printf("torchrun   no peer was measured (--torchrun ROOT)\n"));
  if (!results.torchrun_s.empty())
    std::printf("torchrun   %s s from a kill to the first step: %.1f times as long (medians)\n",
                to_text(spread_of(results.torchrun_s), 1, 2).c_str(), ratio_to_torchrun(results));
  std::printf("torchrun   %zu of %zu runs recovered\n", results.torchrun_s.size(),
              results.torchrun_s.size() + static_cast<std::size_t>(results.num_torchrun_failed));
}

void print_table(const recovery_results& results, const recovery_options& options) {
  std::printf("machine    %s\n", to_text(results.where).c_str());
  std::printf("kills      %zu of %d wanted, SIGKILL, ranks %s in turn, %d processes\n", results.kills.size(),
              options.kills.num_kills, options.ranks.c_str(), options.num_processes);
  std::printf("restarts   %d processes started in all, %d recoveries that were not planned\n",
              results.num_started, results.num_unplanned);
  std::printf("cadence    state copied in memory %s; steps to do again %s\n",
              options.snapshot_every == 0
                  ? "as often as costs 2 % of the time"
                  : ("every " + std::to_string(options.snapshot_every) + " steps").c_str(),
              to_text(spread_of_rollbacks(results), 1, 0).c_str());
  std::printf("job        %llu steps, %.2f ms a step undisturbed, starting and ending included\n",
              static_cast<unsigned long long>(results.steps), 1e3 * results.step_s);
  print_phases(results);
  std::printf(
      "\nweights    %s (sha256 %s)\n",
      results.equal ? "equal to those of the undisturbed run" : "DIFFERENT from those of the undisturbed run",
      results.undisturbed_sha256.c_str());
  print_torchrun(results);
}

int run(recovery_options options) {
  check(options);
  auto results = measure(options);
  if (options.json)
    print_json(results, options);
  else
    print_table(results, options);
  return all_good(results, options) ? 0 : 1;
}

}  // namespace

void add_recovery_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<recovery_options>();
  auto* command = app.add_subcommand("recovery", "Kill workers of a training job, and time how it goes on");
  auto default_of = [](CLI::Option* option) { option->capture_default_str(); };
  default_of(
      command->add_option("--kills", options->kills.num_kills, "Processes to kill, one after the other")
          ->check(CLI::Range(1, 1000)));
  default_of(command->add_option("--nproc", options->num_processes, "Processes of the job")
                 ->check(CLI::Range(2, 64)));
  default_of(command->add_option("--snapshot-every", options->snapshot_every,
                                 "Steps between state copies in memory; 0: by their cost"));
  default_of(command->add_option("--ranks", options->ranks,
                                 "Whom to kill in turn: all, or ranks with commas between"));
  default_of(
      command
          ->add_option("--steps-between", options->steps_between, "Fewest and most steps between two kills")
          ->expected(2));
  default_of(command->add_option("--seed", options->kills.seed, "Of the steps and moments of the kills"));
  command->add_option("--program", options->program,
                      "Training program that takes --steps, --epochs, --snapshot-every and --json");
  command->add_flag("--fashion-mnist", options->fashion_mnist,
                    "Train the Fashion-MNIST example; a lost rank 0 reads its data again");
  command->add_option("--torchrun", options->torchrun.root,
                      "Measure torchrun beside it, in the system with this root");
  command->add_option("--torchrun-script", options->torchrun.script,
                      "The script in there that kills a worker");
  default_of(command->add_option("--torchrun-runs", options->torchrun.runs, "How often; each run is one kill")
                 ->check(CLI::Range(1, 100)));
  command->add_flag("--json", options->json, "One JSON object per line: each kill, then a summary");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
