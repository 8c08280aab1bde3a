#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>

#include "bench/benches.hpp"
#include "bench/measure/report.hpp"
#include "bench/pipeline/computing_pipeline.hpp"
#include "bench/pipeline/synthetic_stage.hpp"
#include "bench/processes/bench_process.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job/step_timeline.hpp"
#include "troupe/schedule/simulation/closed_form.hpp"
#include "troupe/schedule/simulation/measured.hpp"
#include "troupe/schedule/text/draw.hpp"

namespace troupe::bench {
namespace {

struct pipeline_options {
  std::string model = "none";
  int devices = 16;
  int chunks = 2;
  int microbatches = 32;
  double forward_ms = 5;
  double input_gradient_ms = 5;
  double weight_gradient_ms = 5;
  int steps = 10;
  int rounds = 2;
  std::vector<std::string> schedules{"all"};
  bool draws = false;
  bool json = false;

  double work_ms() const { return microbatches * (forward_ms + input_gradient_ms + weight_gradient_ms); }
};

/// One schedule, and what it came to.
struct measured_schedule {
  plan running;
  action_costs costs;  ///< of one stage and one microbatch, in ms
  timeline simulated;
  measurements steps = {};                              ///< a value for each step
  std::vector<int> peak_saved = {};                     ///< [device], over all steps
  std::uint32_t runtime_peak = 0;                       ///< of any stage, as the runtime counted it
  std::vector<actors::job::measured_action> last = {};  ///< what the devices did in the last step
};

std::chrono::nanoseconds nanoseconds_from(double ms) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(ms * 1e6));
}

int chunks_of(schedule_kind kind, const pipeline_options& options) {
  const auto& row = schedule::schedule_of(kind);
  return !row.chunked ? 1 : row.chunked->num_chunks != 0 ? row.chunked->num_chunks : options.chunks;
}

plan plan_of(schedule_kind kind, const pipeline_options& options) {
  return make_plan({kind, options.devices * chunks_of(kind, options), options.microbatches, options.devices});
}

/// The stages of a device together take the times that the user gave, so that all schedules do the same work.
measured_schedule make_schedule(schedule_kind kind, const pipeline_options& options) {
  int chunks = chunks_of(kind, options);
  action_costs costs{.forward = options.forward_ms / chunks,
                     .input_gradient = options.input_gradient_ms / chunks,
                     .weight_gradient = options.weight_gradient_ms / chunks,
                     .hands_on_early = true};
  auto made = plan_of(kind, options);
  auto simulated = simulate(made, costs);
  return {std::move(made), costs, std::move(simulated)};
}

using device_records = std::vector<device_record>;  // [device]

actors::job::job_definition make_job(const measured_schedule& schedule, device_records& records) {
  actors::job::job_definition job;
  job.place(schedule.running, 1);
  job.snapshots.cadence.memory_every_steps = records.front().steps.size();
  job.make_program = [&records, &schedule](const layout::cell& computed) {
    synthetic_stage_options made{.stage = computed.stage,
                                 .num_stages = schedule.running.num_stages,
                                 .forward = nanoseconds_from(schedule.costs.forward),
                                 .input_gradient = nanoseconds_from(schedule.costs.input_gradient),
                                 .weight_gradient = nanoseconds_from(schedule.costs.weight_gradient)};
    auto device = schedule.running.device_of_stage[static_cast<std::size_t>(computed.stage)];
    return std::make_unique<synthetic_stage>(made, records[static_cast<std::size_t>(device)]);
  };
  return job;
}

void add_step(measured_schedule& schedule, const device_records& records, std::size_t step,
              const pipeline_options& options) {
  auto begin = records.front().steps[step].first_begin_ns;
  std::int64_t end = 0, asleep = 0;
  for (const auto& device : records) {
    begin = std::min(begin, device.steps[step].first_begin_ns);
    end = std::max(end, device.steps[step].last_end_ns);
    asleep += device.steps[step].asleep_ns;
  }
  auto span_ms = 1e-6 * static_cast<double>(end - begin);
  auto planned_ms = schedule.simulated.makespan;
  schedule.steps["step_ms"].push_back(span_ms);
  // Alike for all devices: the span of the step minus the nominal work.
  schedule.steps["idle_ms"].push_back(span_ms - options.work_ms());
  schedule.steps["excess_percent_of_step"].push_back(100 * (span_ms - planned_ms) / planned_ms);
  auto nominal_ns = 1e6 * options.work_ms() * options.devices;
  auto num_sleeps = 3.0 * schedule.running.num_stages * options.microbatches;
  schedule.steps["overslept_us_per_action"].push_back(1e-3 * (static_cast<double>(asleep) - nominal_ns) /
                                                      num_sleeps);
}

void measure(measured_schedule& schedule, const pipeline_options& options, int steps) {
  device_records records(static_cast<std::size_t>(options.devices),
                         {std::vector<device_step>(static_cast<std::size_t>(steps))});
  auto self = start_local_process();
  auto job = std::make_shared<actors::job::job_definition>(make_job(schedule, records));
  auto ended = train_steps(*self, job, static_cast<std::uint64_t>(steps));
  self.reset();
  schedule.runtime_peak = std::max(schedule.runtime_peak, ended.timing.peak_activations);
  schedule.last = std::move(ended.last_step);
  schedule.peak_saved.resize(records.size());
  for (std::size_t device = 0; device < records.size(); ++device)
    for (const auto& step : records[device].steps)
      schedule.peak_saved[device] = std::max(schedule.peak_saved[device], step.peak_saved);
  for (std::size_t step = 0; step < static_cast<std::size_t>(steps); ++step)
    add_step(schedule, records, step, options);
}

void draw(const measured_schedule& schedule) {
  schedule::text_drawing drawing{.columns = 120, .color = ::isatty(STDOUT_FILENO) == 1, .unit = "ms"};
  auto name = std::string(to_string(schedule.running.kind));
  std::cout << "\nplanned: " << name << '\n' << draw_text(schedule.simulated, drawing);
  auto ran = timeline_of(schedule.last, static_cast<int>(schedule.simulated.devices.size()), 1e-6);
  std::cout << "\nmeasured: " << name << ", the last step\n" << draw_text(ran, drawing) << '\n';
}

/// The most microbatches that a stage saves, which is what the runtime counts.
int peak_of_a_stage(const timeline& ran) {
  int peak = 0;
  for (const auto& device : ran.devices) {
    std::map<int, std::vector<timed_action>> stages;
    for (const auto& each : device) stages[each.op.stage].push_back(each);
    for (const auto& [stage, actions] : stages) peak = std::max(peak, peak_activations(actions));
  }
  return peak;
}

/// Returns whether every device saved as many activations as in the simulation.
bool print(const measured_schedule& schedule, const pipeline_options& options, report& output) {
  const auto& simulated = schedule.simulated;
  bool equal = schedule.peak_saved == simulated.peak_activations &&
               std::cmp_equal(schedule.runtime_peak, peak_of_a_stage(simulated));
  const auto& running = schedule.running;
  schedule::chunk_shape shape{options.devices, running.num_stages / options.devices, options.microbatches};
  nlohmann::ordered_json line{
      {"schedule", to_string(running.kind)},
      {"devices", options.devices},
      {"stages", running.num_stages},
      {"microbatches", options.microbatches},
      {"steps", options.steps},
      {"nominal_work_ms", options.work_ms()},
      {"formula_idle_ms", closed_form_of(running.kind, shape, schedule.costs).makespan - options.work_ms()},
      {"simulated_idle_ms", simulated.makespan - options.work_ms()}};
  add_spreads(schedule.steps, line);
  line.update({{"peak_activations", schedule.peak_saved},
               {"simulated_peak_activations", simulated.peak_activations},
               {"peak_equal", equal}});
  output.add_block(line);
  if (options.draws) draw(schedule);
  return equal;
}

/// All that are synchronous: another, with one step between flushes, is 1F1B. Throws bad_input for an unknown
/// schedule, and for one without a backward.
std::vector<schedule_kind> kinds_of(const std::vector<std::string>& names) {
  std::vector<schedule_kind> kinds;
  for (const auto& name : names) {
    if (name == "all") {
      for (const auto& row : schedule::schedule_table())
        if (row.kind != schedule_kind::forward_only && !row.steps_order) kinds.push_back(row.kind);
      continue;
    }
    kinds.push_back(schedule_kind_from(name));
    if (kinds.back() == schedule_kind::forward_only)
      throw bad_input("--schedule forward_only has no backward: give one that trains, or all");
  }
  return kinds;
}

int run_computing(const pipeline_options& options) {
  computing_options chosen{
      .model = options.model, .steps = options.steps, .rounds = options.rounds, .draws = options.draws};
  std::vector<plan> plans;
  for (auto kind : kinds_of(options.schedules)) plans.push_back(plan_of(kind, options));
  report output("pipeline", options.json);
  output.note("pipeline", "each device computes on one thread, all in one process");
  return run_computing_pipelines(plans, chosen, output) ? 0 : 1;
}

int run(const pipeline_options& options) {
  if (options.draws && options.json)
    throw bad_input("--draw and --json exclude each other: give one of them");
  if (options.model != "none") return run_computing(options);
  std::vector<measured_schedule> schedules;
  for (auto kind : kinds_of(options.schedules)) schedules.push_back(make_schedule(kind, options));
  report output("pipeline", options.json);
  output.note("pipeline", "each stage sleeps on its device, all in one process");
  auto rounds = std::min(options.rounds, options.steps);
  for (int round = 0; round < rounds; ++round)
    for (auto& each : schedules) measure(each, options, (options.steps + round) / rounds);
  bool all_equal = true;
  for (const auto& each : schedules) all_equal = print(each, options, output) && all_equal;
  return all_equal ? 0 : 1;
}

}  // namespace

void add_pipeline_bench(const bench_commands& to) {
  auto options = std::make_shared<pipeline_options>();
  auto& command = *to.bench.add_subcommand(
      "pipeline", "Run schedules on stages that sleep or compute, and compare with simulation and formulas");
  auto milliseconds = CLI::Range(0.001, 1e4);
  auto& model =
      *command
           .add_option(
               "--model", options->model,
               "none: devices sleep; gpt, mlp: they train it, and the simulation has the measured times")
           ->check(CLI::IsMember({"none", "gpt", "mlp"}));
  auto& devices = *command.add_option("--devices", options->devices, "Devices, each on a thread of its own")
                       ->check(CLI::Range(1, 256));
  command.add_option("--chunks", options->chunks, "Stages of a device in interleaved_1f1b and looped_bfs")
      ->check(CLI::Range(1, 16));
  auto& microbatches = *command.add_option("--microbatches", options->microbatches, "Microbatches of a step")
                            ->check(CLI::Range(1, 4096));
  command
      .add_option("--forward-ms", options->forward_ms, "Sleep of a device for the forward of a microbatch")
      ->check(milliseconds)
      ->excludes(&model);
  command
      .add_option("--input-gradient-ms", options->input_gradient_ms,
                  "Sleep of a device for the input gradients of a microbatch")
      ->check(milliseconds)
      ->excludes(&model);
  command
      .add_option("--weight-gradient-ms", options->weight_gradient_ms,
                  "Sleep of a device for the weight gradients of a microbatch")
      ->check(milliseconds)
      ->excludes(&model);
  command.add_option("--steps", options->steps, "Steps of each schedule")->check(CLI::Range(1, 100000));
  command.add_option("--rounds", options->rounds, "Into so many parts the steps go, the schedules in turn")
      ->check(CLI::Range(1, 1000));
  command.add_option("--schedule", options->schedules, "Names of schedules, or all")->delimiter(',');
  command.add_flag("--draw", options->draws, "Draw each schedule as planned, and its last step as measured");
  command.add_flag("--json", options->json, "One JSON object per schedule");
  command.callback([options, &devices, &microbatches, &exit_code = to.exit_code] {
    // What computes takes cores, and its batch has 32 samples or more.
    if (options->model != "none" && devices.count() == 0) options->devices = 2;
    if (options->model != "none" && microbatches.count() == 0) options->microbatches = 8;
    exit_code = run(*options);
  });
}

}  // namespace troupe::bench
