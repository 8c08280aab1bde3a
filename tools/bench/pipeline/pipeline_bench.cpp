#include <CLI/CLI.hpp>
#include <algorithm>

#include "bench/benches.hpp"
#include "bench/measure/report.hpp"
#include "bench/pipeline/synthetic_stage.hpp"
#include "bench/processes/bench_node.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/simulate.hpp"

namespace troupe::bench {
namespace {

struct pipeline_options {
  int stages = 16;
  int microbatches = 32;
  double forward_ms = 5;
  double backward_ms = 10;
  int steps = 20;
  int rounds = 2;
  std::string schedule = "both";
  bool json = false;

  double work_ms() const { return microbatches * (forward_ms + backward_ms); }
  double formula_idle_ms() const { return (stages - 1) * (forward_ms + backward_ms); }
  double planned_ms() const { return work_ms() + formula_idle_ms(); }
};

/// What one schedule came to.
struct pipeline_results {
  measurements steps;              ///< a value for each step
  std::vector<int> peak_saved;     ///< [stage], over all steps
  std::uint32_t runtime_peak = 0;  ///< as the runtime counted it
};

std::chrono::nanoseconds nanoseconds_from(double ms) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6));
}

/// How many microbatches each stage saves at most.
std::vector<int> formula_peaks(schedule_kind kind, const pipeline_options& options) {
  std::vector<int> peaks;
  for (int stage = 0; stage < options.stages; ++stage)
    peaks.push_back(kind == schedule_kind::gpipe ? options.microbatches
                                                 : std::min(options.microbatches, options.stages - stage));
  return peaks;
}

using step_records = std::vector<std::vector<stage_step>>;  // [stage][step]

job_definition make_job(schedule_kind kind, const pipeline_options& options, step_records& records) {
  job_definition job;
  job.place(make_plan({kind, options.stages, options.microbatches, options.stages}), 1);
  job.snapshots.cadence.memory_every_steps = records.front().size();
  job.make_program = [&records, options](int stage) {
    synthetic_stage_options made{.stage = stage,
                                 .num_stages = options.stages,
                                 .forward = nanoseconds_from(options.forward_ms),
                                 .backward = nanoseconds_from(options.backward_ms)};
    return std::make_unique<synthetic_stage>(made, records[static_cast<std::size_t>(stage)]);
  };
  return job;
}

void add_step(pipeline_results& results, const step_records& records, std::size_t step,
              const pipeline_options& options) {
  std::int64_t begin = records.front()[step].first_begin_ns, end = 0, asleep = 0;
  for (const auto& stage : records) {
    begin = std::min(begin, stage[step].first_begin_ns);
    end = std::max(end, stage[step].last_end_ns);
    asleep += stage[step].asleep_ns;
  }
  // Alike for all devices: the span of the step minus the nominal work.
  auto idle = 1e-6 * static_cast<double>(end - begin) - options.work_ms();
  results.steps["idle_ms"].push_back(idle);
  results.steps["excess_percent_of_step"].push_back(100 * (idle - options.formula_idle_ms()) /
                                                    options.planned_ms());
  auto nominal_ns = 1e6 * options.work_ms() * options.stages;
  results.steps["overslept_us_per_action"].push_back(1e-3 * (static_cast<double>(asleep) - nominal_ns) /
                                                     (2.0 * options.stages * options.microbatches));
}

void measure(schedule_kind kind, const pipeline_options& options, int steps, pipeline_results& results) {
  step_records records(static_cast<std::size_t>(options.stages),
                       std::vector<stage_step>(static_cast<std::size_t>(steps)));
  auto self = start_local_node();
  auto job = std::make_shared<job_definition>(make_job(kind, options, records));
  auto ended = train_steps(*self, job, static_cast<std::uint64_t>(steps));
  self.reset();
  results.runtime_peak = std::max(results.runtime_peak, ended.timing.peak_activations);
  results.peak_saved.resize(records.size());
  for (std::size_t stage = 0; stage < records.size(); ++stage)
    for (const auto& step : records[stage])
      results.peak_saved[stage] = std::max(results.peak_saved[stage], step.peak_saved);
  for (std::size_t step = 0; step < static_cast<std::size_t>(steps); ++step)
    add_step(results, records, step, options);
}

/// Returns whether every stage saved as many activations as the formula says.
bool print(schedule_kind kind, const pipeline_results& results, const pipeline_options& options,
           report& output) {
  auto formula = formula_peaks(kind, options);
  auto equal = results.peak_saved == formula &&
               std::cmp_equal(results.runtime_peak, *std::ranges::max_element(formula));
  nlohmann::ordered_json line{
      {"schedule", to_string(kind)},          {"stages", options.stages},
      {"microbatches", options.microbatches}, {"steps", options.steps},
      {"nominal_work_ms", options.work_ms()}, {"formula_idle_ms", options.formula_idle_ms()}};
  add_spreads(results.steps, line);
  line.update({{"peak_activations", results.peak_saved},
               {"formula_peak_activations", formula},
               {"peak_equal", equal}});
  output.add_block(line);
  return equal;
}

std::vector<schedule_kind> schedules_of(const std::string& text) {
  if (text == "both") return {schedule_kind::gpipe, schedule_kind::one_f_one_b};
  auto kind = schedule_kind_from(text);
  if (kind == schedule_kind::forward_only)
    throw bad_input("--schedule forward_only has no backward: gpipe, 1f1b or both");
  return {kind};
}

int run(const pipeline_options& options) {
  auto kinds = schedules_of(options.schedule);
  report output("pipeline", options.json);
  output.note("pipeline", "each stage sleeps on a device of its own, all in one process");
  std::vector<pipeline_results> results(kinds.size());
  auto rounds = std::min(options.rounds, options.steps);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < kinds.size(); ++i)
      measure(kinds[i], options, (options.steps + round) / rounds, results[i]);
  bool all_equal = true;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    all_equal = print(kinds[i], results[i], options, output) && all_equal;
  return all_equal ? 0 : 1;
}

}  // namespace

void add_pipeline_bench(const bench_commands& to) {
  auto options = std::make_shared<pipeline_options>();
  auto& command = *to.bench.add_subcommand(
      "pipeline", "Run schedules on stages that sleep, and compare with the formulas");
  command.add_option("--stages", options->stages, "Stages, each on a device of its own")
      ->check(CLI::Range(1, 256));
  command.add_option("--microbatches", options->microbatches, "Microbatches of a step")
      ->check(CLI::Range(1, 4096));
  command.add_option("--forward-ms", options->forward_ms, "Sleep of a forward")
      ->check(CLI::Range(0.001, 1e4));
  command.add_option("--backward-ms", options->backward_ms, "Sleep of a backward")
      ->check(CLI::Range(0.001, 1e4));
  command.add_option("--steps", options->steps, "Steps of each schedule")->check(CLI::Range(1, 100000));
  command.add_option("--rounds", options->rounds, "Into so many parts the steps go, the schedules in turn")
      ->check(CLI::Range(1, 1000));
  command.add_option("--schedule", options->schedule, "gpipe, 1f1b or both");
  command.add_flag("--json", options->json, "One JSON object per schedule");
  command.callback([options, &exit_code = to.exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
