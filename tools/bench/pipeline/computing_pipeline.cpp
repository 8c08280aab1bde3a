#include "bench/pipeline/computing_pipeline.hpp"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <tuple>

#include "bench/measure/spread.hpp"
#include "bench/pipeline/recorded_stage.hpp"
#include "bench/processes/bench_process.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/pipeline/partition.hpp"
#include "troupe/random/fill.hpp"
#include "troupe/schedule/simulation/measured.hpp"
#include "troupe/schedule/text/draw.hpp"

namespace troupe::bench {
namespace {

constexpr std::uint64_t seed = 1;

struct trained_model {
  nn::Graph layers;
  batch samples;  ///< the batch of every step
};

trained_model make_gpt() {
  constexpr std::int64_t batch_size = 32;
  nn::gpt_options gpt{.tie_weights = false};
  auto tokens = tensor::empty({batch_size, gpt.context}, dtype::u8);
  auto labels = tensor::empty({batch_size, gpt.context}, dtype::i64);
  auto values = tokens.values<std::uint8_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(i * 37 % 251);
    labels.values<std::int64_t>()[i] = static_cast<std::int64_t>((i + 1) * 37 % 251);
  }
  return {nn::gpt_layers(gpt), {tokens, labels}};
}

trained_model make_mlp() {
  constexpr std::int64_t batch_size = 256, features = 1024, classes = 10;
  auto inputs = tensor::empty({batch_size, features});
  fill_uniform(inputs, -1.7F, 1.7F, seed, "inputs");
  auto labels = tensor::empty({batch_size}, dtype::i64);
  for (std::int64_t i = 0; i < batch_size; ++i)
    labels.values<std::int64_t>()[static_cast<std::size_t>(i)] = i % classes;
  nn::Sequential layers(nn::Linear(features, features), nn::ReLU(), nn::Linear(features, features),
                        nn::ReLU(), nn::Linear(features, features), nn::ReLU(),
                        nn::Linear(features, features), nn::ReLU(), nn::Linear(features, classes));
  return {std::move(layers), {inputs, labels}};
}

trained_model make_model(const std::string& name) { return name == "gpt" ? make_gpt() : make_mlp(); }

using steps_by_device = std::vector<std::vector<recorded_step>>;  // [device][step]

struct computed_schedule {
  plan running;
  measurements steps = {};                 ///< a value for each step
  timeline simulated = {}, measured = {};  ///< the last step, in ms
};

/// What each action of the plan took, in a step. A B is made of what was recorded as I and W.
std::function<action_time(const action&)> times_of(const steps_by_device& ran, std::size_t step) {
  std::map<std::tuple<int, action_kind, int>, double> took;
  for (const auto& device : ran)
    for (const auto& [op, begin, end] : device[step]) took[{op.stage, op.kind, op.microbatch}] = end - begin;
  return [took = std::move(took)](const action& op) -> action_time {
    auto of = [&](action_kind kind) { return took.at({op.stage, kind, op.microbatch}); };
    if (op.kind != action_kind::backward) return {of(op.kind), of(op.kind)};
    auto first = of(action_kind::input_gradient);
    return {first + of(action_kind::weight_gradient), first};
  };
}

std::vector<recorded_step> devices_of(const steps_by_device& ran, std::size_t step) {
  std::vector<recorded_step> devices;
  for (const auto& device : ran) devices.push_back(device[step]);
  return devices;
}

void add_step(computed_schedule& schedule, const steps_by_device& ran, std::size_t step) {
  schedule.simulated = simulate_with(schedule.running, times_of(ran, step));
  schedule.measured = schedule::measured_timeline(devices_of(ran, step));
  auto planned = schedule.simulated.makespan, took = schedule.measured.makespan;
  schedule.steps["step_ms"].push_back(took);
  schedule.steps["simulated_ms"].push_back(planned);
  schedule.steps["bubble_percent"].push_back(100 * schedule::summarize(schedule.measured).bubble_fraction);
  schedule.steps["simulated_bubble_percent"].push_back(
      100 * schedule::summarize(schedule.simulated).bubble_fraction);
  schedule.steps["excess_percent_of_step"].push_back(100 * (took - planned) / planned);
}

void measure(computed_schedule& schedule, const trained_model& model, int steps) {
  const auto& running = schedule.running;
  steps_by_device ran(running.devices.size(), std::vector<recorded_step>(static_cast<std::size_t>(steps)));
  detail::module_program_options options{
      .loss = nn::CrossEntropy(), .optimizer = optim::Adam({.lr = 1e-3}), .seed = seed};
  auto job = std::make_shared<actors::job::job_definition>();
  job->place(running, 1);
  job->snapshots.cadence.memory_every_steps = static_cast<std::uint64_t>(steps);
  job->make_program =
      [&ran, &running,
       make = make_module_programs(model.layers, running.num_stages, options)](const layout::cell& computed) {
        auto device = running.device_of_stage[static_cast<std::size_t>(computed.stage)];
        return std::make_unique<recorded_stage>(make(computed), computed.stage,
                                                ran[static_cast<std::size_t>(device)]);
      };
  auto self = start_local_process();
  train_steps(*self, job, static_cast<std::uint64_t>(steps), model.samples);
  self.reset();
  // The first step finds its memory and its kernels.
  for (std::size_t step = 1; step < static_cast<std::size_t>(steps); ++step) add_step(schedule, ran, step);
}

void draw(const computed_schedule& schedule) {
  schedule::text_drawing drawing{.columns = 120, .color = ::isatty(STDOUT_FILENO) == 1, .unit = "ms"};
  auto name = std::string(to_string(schedule.running.kind));
  std::cout << "\nsimulated: " << name << ", with the times of the last step\n"
            << draw_text(schedule.simulated, drawing);
  std::cout << "\nmeasured: " << name << ", the last step\n" << draw_text(schedule.measured, drawing) << '\n';
}

bool print(const computed_schedule& schedule, const computing_options& options, report& output) {
  bool equal = schedule.measured.peak_activations == schedule.simulated.peak_activations;
  nlohmann::ordered_json line{{"schedule", to_string(schedule.running.kind)},
                              {"model", options.model},
                              {"devices", schedule.running.num_devices()},
                              {"stages", schedule.running.num_stages},
                              {"microbatches", schedule.running.num_microbatches}};
  add_spreads(schedule.steps, line);
  line.update({{"peak_activations", schedule.measured.peak_activations},
               {"simulated_peak_activations", schedule.simulated.peak_activations},
               {"peak_equal", equal}});
  output.add_block(line);
  if (options.draws) draw(schedule);
  return equal;
}

void check_divides(int microbatches, const trained_model& model, const std::string& name) {
  auto size = model.samples.inputs.shape()[0];
  if (size % microbatches == 0) return;
  throw bad_input("--microbatches " + std::to_string(microbatches) + " does not divide the batch of " +
                  std::to_string(size) + " samples of --model " + name);
}

}  // namespace

bool run_computing_pipelines(const std::vector<plan>& plans, const computing_options& options,
                             report& output) {
  auto model = make_model(options.model);
  std::vector<computed_schedule> schedules;
  for (const auto& each : plans) {
    check_divides(each.num_microbatches, model, options.model);
    static_cast<void>(partition_into_stages(model.layers, each.num_stages));
    schedules.push_back({each});
  }
  output.note_crowding(plans.front().num_devices());
  auto rounds = std::min(options.rounds, options.steps);
  for (int round = 0; round < rounds; ++round)
    for (auto& each : schedules) measure(each, model, (options.steps + round) / rounds + 1);
  bool all_equal = true;
  for (const auto& each : schedules) all_equal = print(each, options, output) && all_equal;
  return all_equal;
}

}  // namespace troupe::bench
