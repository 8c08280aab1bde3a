#include <algorithm>
#include <charconv>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "bench/benches.hpp"
#include "bench/measure/arguments.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/torch.hpp"
#include "bench/processes/subprocess.hpp"
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
  std::istringstream words(text + ',');  // an empty last word is read too, and refused
  for (std::string word; std::getline(words, word, ',');) {
    int rank = -1;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rank);
    if (error != std::errc() || end != word.data() + word.size() || rank < 0 || rank >= num_processes)
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
  if (options.fashion_mnist) command = {sibling_program("fashion_mnist")};
  if (!options.program.empty()) command = {options.program};
  command.insert(command.end(), {"--json", "--epochs", "100000", "--steps", std::to_string(steps),
                                 "--snapshot-every", std::to_string(options.snapshot_every)});
  return command;
}

/// The kills in rounds, one for each run of the peer, so that what is compared is measured side by side.
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

void print_kill(const measured_kill& kill, report& output) {
  nlohmann::ordered_json line{{"event", "kill"},
                              {"rank", kill.rank},
                              {"step", kill.step},
                              {"rolled_back", kill.rolled_back},
                              {"cause", kill.report.loss.cause}};
  for (const auto& [name, seconds] : phases) line[std::string(name) + "_s"] = kill.report.*seconds;
  const table shown{{{"killed rank", {"rank"}, 0, 0},
                     {"step", {"step"}, of_number, 0},
                     {"rolled back", {"rolled_back"}, 0, 0},
                     {"total ms", {"total_s"}, of_number, 1, 1e3}}};
  output.add(shown, line);
}

void add_round(recovery_results& results, const run_outcome& round, report& output) {
  for (const auto& kill : round.kills) print_kill(kill, output);
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

recovery_results measure(const recovery_options& options, report& output) {
  recovery_results results;
  auto rounds = rounds_of(options);
  results.steps = steps_for(rounds, options);
  auto command = command_of(options, results.steps);
  auto undisturbed = killed_run(command, options.num_processes, {}).run();
  results.undisturbed_sha256 = undisturbed.weights_sha256;
  results.step_s = undisturbed.seconds / static_cast<double>(results.steps);
  for (const auto& round : rounds) {
    add_round(results, killed_run(command, options.num_processes, round).run(), output);
    if (!options.torchrun.root.empty()) add_torchrun(results, options);
  }
  return results;
}

template <class Field>
spread spread_over(const recovery_results& results, Field field) {
  std::vector<double> values;
  for (const auto& kill : results.kills) values.push_back(static_cast<double>(field(kill)));
  return spread_of(std::move(values));
}

table summary_table() {
  table shown{{{"kills, SIGKILL", {"kills"}, 0, 0},
               {"kills wanted", {"kills_wanted"}, 0, 0},
               {"processes", {"nproc"}, 0, 0},
               {"processes started", {"processes_started"}, 0, 0},
               {"recoveries that were not planned", {"unplanned_recoveries"}, 0, 0},
               {"cadence: steps between copies, 0: by cost", {"snapshot_every"}, 0, 0},
               {"steps to do again", {"steps_rolled_back"}, 0, 0},
               {"steps of the job", {"steps"}, 0, 0},
               {"undisturbed, ms a step", {"undisturbed_s_per_step"}, 0, 2, 1e3}},
              table_layout::blocks};
  for (const auto& [name, seconds] : phases)
    shown.columns.push_back({std::string(name) + ", ms", {std::string(name) + "_s"}, 0, 1, 1e3});
  shown.columns.push_back({"weights equal to those of the undisturbed run", {"weights_equal"}});
  shown.columns.push_back({"weights (sha256)", {"weights_sha256"}});
  shown.columns.push_back({"torchrun, s from a kill to the first step", {"torchrun_s"}});
  shown.columns.push_back({"torchrun over total", {"torchrun_ratio"}, 0, 1});
  shown.columns.push_back({"torchrun runs that did not recover", {"torchrun_failed"}, 0, 0});
  return shown;
}

void print_summary(const recovery_results& results, const recovery_options& options, report& output) {
  nlohmann::ordered_json line{
      {"event", "summary"},
      {"nproc", options.num_processes},
      {"program", command_of(options, results.steps)},
      {"kills_wanted", options.kills.num_kills},
      {"kills", results.kills.size()},
      {"unplanned_recoveries", results.num_unplanned},
      {"processes_started", results.num_started},
      {"snapshot_every", options.snapshot_every},
      {"steps_rolled_back", to_json(spread_over(results, [](auto& kill) { return kill.rolled_back; }))},
      {"steps", results.steps},
      {"undisturbed_s_per_step", results.step_s}};
  for (const auto& [name, seconds] : phases)
    line[std::string(name) + "_s"] =
        to_json(spread_over(results, [field = seconds](auto& kill) { return kill.report.*field; }));
  line["weights_equal"] = results.equal;
  line["weights_sha256"] = results.undisturbed_sha256;
  line["torchrun_s"] = spread_json(results.torchrun_s);
  line["torchrun_failed"] = results.num_torchrun_failed;
  if (!results.torchrun_s.empty())
    line["torchrun_ratio"] =
        line["torchrun_s"]["median"].get<double>() / line["total_s"]["median"].get<double>();
  output.add(summary_table(), line);
}

int run(recovery_options options) {
  check(options);
  report output("recovery", options.json);
  auto results = measure(options, output);
  print_summary(results, options, output);
  if (options.torchrun.root.empty()) output.note("torchrun", "no peer was measured (--torchrun ROOT)");
  return results.equal && std::cmp_equal(results.kills.size(), options.kills.num_kills) ? 0 : 1;
}

}  // namespace

void add_recovery_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<recovery_options>();
  auto& torchrun = options->torchrun;
  subcommand command(app, "recovery", "Kill workers of a training job, and time how it goes on");
  command.add("--kills", options->kills.num_kills, "Processes to kill, one after the other",
              between(1, 1000));
  command.add("--nproc", options->num_processes, "Processes of the job", between(2, 64));
  command.add("--snapshot-every", options->snapshot_every,
              "Steps between state copies in memory; 0: by their cost");
  command.add("--ranks", options->ranks, "Whom to kill in turn: all, or ranks with commas between");
  command.add_pair("--steps-between", options->steps_between, "Fewest and most steps between two kills");
  command.add("--seed", options->kills.seed, "Of the steps and moments of the kills");
  command.add("--program", options->program,
              "Training program that takes --steps, --epochs, --snapshot-every and --json");
  command.add_flag("--fashion-mnist", options->fashion_mnist,
                   "Train the Fashion-MNIST example; a lost rank 0 reads its data again");
  command.add("--torchrun", torchrun.root, "Measure torchrun beside it, in the system with this root");
  command.add("--torchrun-script", torchrun.script, "The script in there that kills a worker");
  command.add("--torchrun-runs", torchrun.runs, "How often; each run is one kill", between(1, 100));
  command.add_flag("--json", options->json, "One JSON object per line: each kill, then a summary");
  command.on_run([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
