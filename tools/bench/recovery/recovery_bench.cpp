#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "bench/benches.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/torch.hpp"
#include "bench/processes/subprocess.hpp"
#include "bench/recovery/killed_run.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::bench {
namespace {

struct recovery_options {
  kill_plan_options kills;
  int num_processes = 4;
  int num_groups = 0;
  int num_replicas = 1;
  std::vector<std::uint64_t> steps_between = {20, 60};
  std::uint64_t snapshot_every = 0;
  std::string program;
  std::string schedule;                ///< empty: the program's own
  std::filesystem::path snapshot_dir;  ///< empty: no snapshots on disk
  bool fashion_mnist = false;
  torchrun_options torchrun;
  bool json = false;
};

/// Before anything runs: the measured job would refuse it.
void check_schedule(const std::string& name) {
  try {
    schedule_kind_from(name);
  } catch (const bad_input& problem) {
    throw bad_input("--schedule: " + std::string(problem.what()));
  }
}

/// The phases of a recovery, by their field in a result.
struct phase {
  const char* field;
  double cluster::recovery_report::*seconds;
};
constexpr phase phases[] = {
    {"detect_s", &cluster::recovery_report::detect_s},   {"fence_s", &cluster::recovery_report::fence_s},
    {"quiesce_s", &cluster::recovery_report::quiesce_s}, {"respawn_s", &cluster::recovery_report::respawn_s},
    {"restore_s", &cluster::recovery_report::restore_s}, {"rebuild_s", &cluster::recovery_report::rebuild_s},
    {"replay_s", &cluster::recovery_report::replay_s},   {"total_s", &cluster::recovery_report::total_s}};

/// What processes with groups print, by its field in a result.
constexpr const char* group_fields[] = {"made_s", "threads", "bytes_per_group"};

/// Everything that was measured, over all rounds.
struct recovery_results {
  measurements kills;   ///< one value for each kill
  measurements groups;  ///< a value for each run of the job with groups
  int num_kills = 0;
  int num_unplanned = 0;
  int num_started = 0;
  std::uint64_t steps = 0;  ///< steps that each job trains
  double step_s = 0;        ///< wall time of a step of the undisturbed job, its start included
  std::string undisturbed_sha256;
  bool equal = true;
  std::vector<double> torchrun_s;  ///< of the runs that recovered
  int num_torchrun_failed = 0;     ///< runs that did not recover
};

void check_ranks(recovery_options& options) {
  auto& ranks = options.kills.ranks;
  if (ranks.empty()) {
    ranks.resize(static_cast<std::size_t>(options.num_processes));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  for (auto rank : ranks)
    if (rank < 0 || rank >= options.num_processes)
      throw bad_input("--ranks: '" + std::to_string(rank) + "' is no rank, expected numbers from 0 to " +
                      std::to_string(options.num_processes - 1) + " with commas between");
}

void check(recovery_options& options) {
  check_ranks(options);
  options.kills.least_steps_between = options.steps_between[0];
  options.kills.most_steps_between = options.steps_between[1];
  if (options.steps_between[0] < 1 || options.steps_between[0] > options.steps_between[1])
    throw bad_input(
        "--steps-between wants the fewest and the most steps between two kills, from 1 on, for example 20 "
        "60");
  if (options.num_groups > 0 && (options.fashion_mnist || !options.program.empty()))
    throw bad_input("--groups: only the default job makes groups, without --fashion-mnist and --program");
  if (options.fashion_mnist && !options.program.empty())
    throw bad_input("--fashion-mnist and --program exclude each other");
  if (!options.snapshot_dir.empty() && !std::filesystem::is_directory(options.snapshot_dir))
    throw bad_input("--snapshot-dir " + options.snapshot_dir.string() +
                    ": there is no such folder, expected one in which each run may make its own");
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
  if (options.num_groups > 0) command.insert(command.end(), {"--groups", std::to_string(options.num_groups)});
  if (options.fashion_mnist) command = {sibling_program("fashion_mnist")};
  if (!options.program.empty()) command = {options.program};
  command.insert(command.end(), {"--json", "--epochs", "100000", "--steps", std::to_string(steps),
                                 "--snapshot-every", std::to_string(options.snapshot_every)});
  if (!options.schedule.empty()) command.insert(command.end(), {"--schedule", options.schedule});
  if (options.num_replicas > 1)
    command.insert(command.end(), {"--replicas", std::to_string(options.num_replicas)});
  return command;
}

/// The kills in rounds: one for each run of the peer, so that what is compared is measured side by side; or
/// one for each kill, since only first processes have groups.
std::vector<std::vector<planned_kill>> rounds_of(const recovery_options& options) {
  int rounds = options.torchrun.root.empty()
                   ? 1
                   : std::max(1, std::min(options.torchrun.runs, options.kills.num_kills));
  std::vector<std::vector<planned_kill>> made;
  if (options.num_groups > 0) rounds = options.kills.num_kills;
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

void add_kill(recovery_results& results, const measured_kill& kill, report& output) {
  nlohmann::ordered_json line{{"event", "kill"},
                              {"rank", kill.rank},
                              {"step", kill.step},
                              {"rolled_back", kill.rolled_back},
                              {"cause", kill.report.loss.cause}};
  for (const auto& [field, seconds] : phases) {
    line[field] = kill.report.*seconds;
    results.kills[field].push_back(kill.report.*seconds);
  }
  results.kills["steps_rolled_back"].push_back(static_cast<double>(kill.rolled_back));
  ++results.num_kills;
  output.add({{"rank"}, {"step"}, {"rolled_back"}, {"total_s"}}, line);
}

void add_round(recovery_results& results, const run_outcome& round, report& output) {
  for (const auto& kill : round.kills) add_kill(results, kill, output);
  for (const auto& line : round.groups)
    for (const auto* field : group_fields) results.groups[field].push_back(line.value(field, 0.0));
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

/// Removed with its content at the end, also if the job fails.
struct removed_folder {
  explicit removed_folder(std::filesystem::path folder) : path(std::move(folder)) {}
  removed_folder(const removed_folder&) = delete;
  removed_folder& operator=(const removed_folder&) = delete;
  ~removed_folder() {
    std::error_code problem;
    std::filesystem::remove_all(path, problem);
    if (problem)
      std::fprintf(stderr, "bench recovery: cannot remove %s: %s\n", path.c_str(), problem.message().c_str());
  }
  std::filesystem::path path;
};

/// Of a run with snapshots on disk they go to a folder of its own.
run_outcome run_job(std::vector<std::string> command, const recovery_options& options,
                    const std::vector<planned_kill>& kills) {
  if (options.snapshot_dir.empty()) return killed_run(std::move(command), options.num_processes, kills).run();
  auto pattern = (options.snapshot_dir / "bench-recovery-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw system_failure("cannot make a folder " + pattern, errno);
  command.insert(command.end(), {"--snapshot-dir", pattern});
  removed_folder folder{pattern};
  return killed_run(std::move(command), options.num_processes, kills).run();
}

recovery_results measure(const recovery_options& options, report& output) {
  recovery_results results;
  auto rounds = rounds_of(options);
  results.steps = steps_for(rounds, options);
  auto command = command_of(options, results.steps);
  auto undisturbed = run_job(command, options, {});
  results.undisturbed_sha256 = undisturbed.weights_sha256;
  results.step_s = undisturbed.seconds / static_cast<double>(results.steps);
  for (const auto& round : rounds) {
    add_round(results, run_job(command, options, round), output);
    if (!options.torchrun.root.empty()) add_torchrun(results, options);
  }
  return results;
}

void print_summary(recovery_results& results, const recovery_options& options, report& output) {
  nlohmann::ordered_json line{{"event", "summary"},
                              {"nproc", options.num_processes},
                              {"replicas", options.num_replicas},
                              {"program", command_of(options, results.steps)},
                              {"kills_wanted", options.kills.num_kills},
                              {"kills", results.num_kills},
                              {"unplanned_recoveries", results.num_unplanned},
                              {"processes_started", results.num_started},
                              {"snapshot_every", options.snapshot_every},
                              {"snapshots_on_disk", !options.snapshot_dir.empty()},
                              {"steps_rolled_back", spread_json(results.kills["steps_rolled_back"])},
                              {"steps", results.steps},
                              {"undisturbed_s_per_step", results.step_s}};
  for (const auto& each : phases) line[each.field] = spread_json(results.kills[each.field]);
  if (options.num_groups > 0) {
    line["groups"] = options.num_groups;
    for (const auto* field : group_fields)
      line[std::string("groups_") + field] = spread_json(results.groups[field]);
  }
  line["weights_equal"] = results.equal;
  line["weights_sha256"] = results.undisturbed_sha256;
  line["torchrun_s"] = spread_json(results.torchrun_s);
  line["torchrun_failed"] = results.num_torchrun_failed;
  if (!results.torchrun_s.empty())
    line["torchrun_ratio"] = median_of(results.torchrun_s) / median_of(results.kills["total_s"]);
  output.add_block(line);
}

int run(recovery_options options) {
  check(options);
  report output("recovery", options.json);
  auto results = measure(options, output);
  print_summary(results, options, output);
  if (options.torchrun.root.empty()) output.note("torchrun", "no peer was measured (--torchrun ROOT)");
  return results.equal && results.num_kills == options.kills.num_kills ? 0 : 1;
}

}  // namespace

void add_recovery_bench(const bench_commands& to) {
  auto options = std::make_shared<recovery_options>();
  auto& torchrun = options->torchrun;
  auto& command =
      *to.bench.add_subcommand("recovery", "Kill workers of a training job, and time how it goes on");
  command.add_option("--kills", options->kills.num_kills, "Processes to kill, one after the other")
      ->check(CLI::Range(1, 1000));
  command.add_option("--nproc", options->num_processes, "Processes of the job")->check(CLI::Range(2, 64));
  command
      .add_option("--groups", options->num_groups,
                  "Groups of all processes, each with a call under way that a kill ends")
      ->check(CLI::Range(0, 1000));
  command
      .add_option("--replicas", options->num_replicas,
                  "Replicas of the model, which the training program takes as --replicas")
      ->check(CLI::Range(1, 64));
  command.add_option("--snapshot-every", options->snapshot_every,
                     "Steps between state copies in memory; 0: by their cost");
  command.add_option("--snapshot-dir", options->snapshot_dir,
                     "The jobs write snapshots on disk, in folders made in this one and removed at the end");
  command.add_option("--ranks", options->kills.ranks, "Whom to kill in turn, with commas between; none: all")
      ->delimiter(',');
  command.add_option("--steps-between", options->steps_between, "Fewest and most steps between two kills")
      ->expected(2);
  command.add_option("--seed", options->kills.seed, "Of the steps and moments of the kills");
  command.add_option(
      "--program", options->program,
      "Training program that takes --steps, --epochs, --snapshot-every, --snapshot-dir and --json");
  command.add_option("--schedule", options->schedule, "Of the training program, as it takes --schedule")
      ->each(check_schedule);
  command.add_flag("--fashion-mnist", options->fashion_mnist,
                   "Train the Fashion-MNIST example; a lost rank 0 reads its data again");
  command.add_option("--torchrun", torchrun.root, "Measure torchrun beside it, in the system with this root");
  command.add_option("--torchrun-script", torchrun.script, "The script in there that kills a worker");
  command.add_option("--torchrun-runs", torchrun.runs, "How often; each run is one kill")
      ->check(CLI::Range(1, 100));
  command.add_flag("--json", options->json, "One JSON object per line: each kill, then a summary");
  command.callback([options, &exit_code = to.exit_code] { exit_code = run(*options); });
  add_training_worker(to);
}

}  // namespace troupe::bench
