#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "bench/benches.hpp"
#include "bench/measure/report.hpp"
#include "bench/placement/uneven_models.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/planning/predict_job.hpp"
#include "troupe/profile_job.hpp"
#include "troupe/trainer.hpp"

namespace troupe::bench {
namespace {

struct placement_options {
  int devices = 2;
  int batch = 256;
  int microbatches = 8;
  int steps = 20;
  int rounds = 3;
  std::vector<std::string> models{"all"};
  bool json = false;
};

void check(const placement_options& options) {
  for (const auto& [name, value] :
       {std::pair("--devices", options.devices), std::pair("--batch", options.batch),
        std::pair("--microbatches", options.microbatches), std::pair("--steps", options.steps),
        std::pair("--rounds", options.rounds)})
    if (value < 1 || value > 1 << 16)
      throw bad_input(std::string(name) + " must lie between 1 and 65536, got " + std::to_string(value));
}

job_options job_of(const placement_options& options) {
  job_options job;
  job.devices = options.devices;
  job.batch = options.batch;
  job.microbatches = options.microbatches;
  job.epochs = options.steps;  // there is one batch
  return job;
}

/// The same number of layers with parameters on each device, as far as they come out even. The profile has
/// at least as many.
DeviceMap equal_count_map(const cost_profile& profile, int num_devices) {
  auto num_pieces = std::ranges::count_if(profile.layers,
                                          [](const layer_cost& layer) { return layer.parameter_bytes > 0; });
  DeviceMap map;
  std::ptrdiff_t piece = -1;
  for (const auto& layer : profile.layers) {
    if (layer.parameter_bytes > 0) ++piece;
    map.layer(layer.name, static_cast<int>(std::max<std::ptrdiff_t>(piece, 0) * num_devices / num_pieces));
  }
  return map;
}

/// Milliseconds of a step, the median of a job's.
double step_ms(const uneven_model& model, const DeviceMap& map, const placement_options& options) {
  auto pipeline = model.pipeline;
  pipeline.device_map(map);
  Trainer trainer(World::local(options.devices, job_of(options)), pipeline);
  return 1e3 * trainer.fit(model.samples).step_s;
}

void measure(const std::string& name, const placement_options& options, report& to) {
  auto model = make_uneven_model(name, options.batch);
  model.pipeline.microbatches(options.microbatches);
  auto profile = [&] { return profile_job(model.pipeline, model.samples, job_of(options)); };
  auto first = profile();
  prediction_options on{.num_microbatches = options.microbatches,
                        .devices = std::vector<device_capacity>(static_cast<std::size_t>(options.devices))};
  auto automatic = DeviceMap::automatic(first, balance_for(on));
  auto equal = equal_count_map(first, options.devices);
  measurements measured;
  for (int round = 0; round < options.rounds; ++round) {
    // Just before the job: a machine is not as fast in one minute as in another.
    auto costs = round == 0 ? first : profile();
    auto predicted = 1e3 * predict_job(costs, automatic, on).ran.makespan;
    auto step = step_ms(model, automatic, options);
    auto equal_count = step_ms(model, equal, options);
    measured["predicted_ms"].push_back(predicted);
    measured["predicted_equal_count_ms"].push_back(1e3 * predict_job(costs, equal, on).ran.makespan);
    measured["step_ms"].push_back(step);
    measured["equal_count_ms"].push_back(equal_count);
    measured["error_percent"].push_back(100 * (predicted - step) / step);
    measured["faster_percent"].push_back(100 * (equal_count / step - 1));
  }
  nlohmann::ordered_json result = {{"model", name}};
  add_spreads(measured, result);
  to.add({{"model", 6},
          {"predicted_ms", 12},
          {"step_ms", 10},
          {"error_percent", 13},
          {"predicted_equal_count_ms", 24},
          {"equal_count_ms", 14},
          {"faster_percent", 14}},
         result);
}

void run(const placement_options& options) {
  check(options);
  report to("placement", options.json);
  to.note_crowding(options.devices);
  auto names = options.models;
  if (names == std::vector<std::string>{"all"}) names = uneven_model_names();
  for (const auto& name : names) measure(name, options, to);
}

}  // namespace

void add_placement_bench(const bench_commands& to) {
  auto options = std::make_shared<placement_options>();
  auto* command = to.bench.add_subcommand(
      "placement",
      "Automatic placement of uneven models: predicted and measured steps, and equal numbers of layers");
  auto add = [command](const char* name, int& value, const char* text) {
    command->add_option(name, value, text)->capture_default_str();
  };
  add("--devices", options->devices, "Devices, a thread each");
  add("--batch", options->batch, "Samples of a step");
  add("--microbatches", options->microbatches, "Microbatches of a step");
  add("--steps", options->steps, "Steps of a job");
  add("--rounds", options->rounds, "Jobs of each placement, in turn");
  command->add_option("--models", options->models, "mlp, cnn and gpt, or all")
      ->delimiter(',')
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print lines of JSON instead");
  command->callback([options] { run(*options); });
}

}  // namespace troupe::bench
