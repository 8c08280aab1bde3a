#include "troupe/planning/predict_job.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// Of how many microbatches each stage of a chain keeps activations.
std::vector<int> kept_microbatches(const prediction_options& options, int num_devices) {
  auto chain = make_plan({.kind = options.schedule,
                          .num_stages = num_devices,
                          .num_microbatches = options.num_microbatches,
                          .num_devices = num_devices});
  return simulate(chain, {}).peak_activations;
}

std::vector<layer_run> stages_of(const DeviceMap& map, const cost_profile& profile) {
  try {
    auto stages = runs_of(devices_of_layers(map.entries(), profile.names()));
    for (const auto& stage : stages) {
      auto first = profile.layers.begin() + stage.first, last = profile.layers.begin() + stage.last;
      if (std::none_of(first, last, [](const layer_cost& layer) { return layer.parameter_bytes > 0; }))
        throw bad_input("the stage from " + first->name + " to " + (last - 1)->name +
                        " would have no parameters to train. Let it begin earlier or end later");
    }
    return stages;
  } catch (const bad_input& problem) {
    if (map.file().empty()) throw;
    throw bad_input(map.file().string() + ": " + problem.what());
  }
}

/// A value that goes from one stage to another.
struct stage_value {
  schedule::edge between;
  std::uint64_t bytes = 0;
};

/// Each value of a layer has one output port, and one edge to each stage that uses it.
std::vector<stage_value> values_between(const std::vector<layer_run>& stages, const cost_profile& profile) {
  auto stage_of = [&stages](int layer) {
    auto found = std::ranges::upper_bound(stages, std::max(layer, 0), {}, &layer_run::first);
    return static_cast<int>(found - stages.begin()) - 1;
  };
  // Stages that use the samples and nothing else take them themselves.
  std::set<int> takes_other;
  for (const auto& value : profile.values)
    if (value.from >= 0 && stage_of(value.from) != stage_of(value.to)) takes_other.insert(stage_of(value.to));
  std::map<std::pair<int, int>, int> port_of;
  std::map<int, int> num_outputs, num_inputs;
  std::set<std::pair<std::pair<int, int>, int>> known;
  std::vector<stage_value> result;
  for (const auto& value : profile.values) {
    auto from = stage_of(value.from), to = stage_of(value.to);
    std::pair source(value.from, value.output);
    if (from == to || (value.from < 0 && !takes_other.contains(to))) continue;
    if (!known.insert({source, to}).second) continue;
    auto [port, is_new] = port_of.try_emplace(source, num_outputs[from]);
    if (is_new) ++num_outputs[from];
    result.push_back({{from, port->second, to, num_inputs[to]++}, value.bytes});
  }
  return result;
}

/// The time that a stage's gradients are under way, and in how many buckets of usual size.
void add_sum_over_replicas(std::uint64_t gradient_bytes, const prediction_options& options,
                           action_costs& costs) {
  constexpr std::uint64_t usual_bucket_bytes = 2 << 20;
  if (options.num_replicas == 1 || options.bytes_per_s <= 0) return;
  costs.sum_transfer = transfer_time(action_kind::all_reduce, static_cast<double>(gradient_bytes),
                                     options.num_replicas, {options.bytes_per_s, options.latency_s});
  costs.num_buckets = static_cast<int>(gradient_bytes / usual_bucket_bytes) + 1;
}

std::vector<action_costs> costs_of(const cost_profile& profile, const std::vector<layer_run>& stages,
                                   const std::vector<stage_value>& values,
                                   const prediction_options& options) {
  std::vector<action_costs> costs;
  for (const auto& stage : stages) {
    action_costs sum{.forward = 0, .input_gradient = 0, .weight_gradient = 0, .hands_on_early = true};
    auto speed = options.devices[static_cast<std::size_t>(stage.device)].speed;
    std::uint64_t gradient_bytes = 0;
    for (int layer = stage.first; layer < stage.last; ++layer) {
      const auto& cost = profile.layers[static_cast<std::size_t>(layer)];
      sum.forward += cost.forward_s / speed;
      sum.input_gradient += cost.input_gradient_s / speed;
      sum.weight_gradient += cost.weight_gradient_s / speed;
      sum.apply += cost.apply_s / speed;
      gradient_bytes += cost.gradient_bytes;
    }
    add_sum_over_replicas(gradient_bytes, options, sum);
    costs.push_back(sum);
  }
  for (const auto& [between, bytes] : values) {
    auto& communication = costs[static_cast<std::size_t>(between.to)].communication;
    communication = std::max(communication, options.latency_s);
    if (options.bytes_per_s > 0) communication += static_cast<double>(bytes) / options.bytes_per_s;
  }
  return costs;
}

std::vector<link_load> links_of(const job_prediction& prediction, const std::vector<stage_value>& values) {
  std::map<std::pair<int, int>, std::uint64_t> bytes_of;
  for (const auto& [between, bytes] : values) {
    auto from = prediction.stages[static_cast<std::size_t>(between.from)].device;
    auto to = prediction.stages[static_cast<std::size_t>(between.to)].device;
    if (from == to) continue;
    auto in_step = bytes * static_cast<std::uint64_t>(prediction.made.num_microbatches);
    bytes_of[{from, to}] += in_step;
    bytes_of[{to, from}] += in_step;
  }
  std::vector<link_load> links;
  for (const auto& [devices, bytes] : bytes_of) links.push_back({devices.first, devices.second, bytes});
  return links;
}

}  // namespace

job_prediction predict_job(const cost_profile& profile, const DeviceMap& map,
                           const prediction_options& options) {
  check_profile(profile);
  job_prediction result{.stages = stages_of(map, profile), .made = {}, .ran = {}, .memory = {}, .links = {}};
  auto num_devices = std::ranges::max_element(result.stages, {}, &layer_run::device)->device + 1;
  if (num_devices > static_cast<int>(options.devices.size()))
    throw bad_input((map.file().empty() ? "" : map.file().string() + ": ") + "the device map names device " +
                    std::to_string(num_devices - 1) + ", but the job has " +
                    std::to_string(options.devices.size()) + " devices" +
                    (options.num_replicas > 1 ? " for each replica" : "") +
                    ", from 0 on. Give it more devices or processes, or place the layers on fewer");
  auto values = values_between(result.stages, profile);
  plan_options made{.kind = options.schedule,
                    .num_stages = static_cast<int>(result.stages.size()),
                    .num_microbatches = options.num_microbatches,
                    .num_devices = num_devices,
                    .num_replicas = options.num_replicas};
  for (const auto& stage : result.stages) made.device_of_stage.push_back(stage.device);
  for (const auto& value : values) made.edges.push_back(value.between);
  result.made = plan_placed_by(map, made);
  result.ran = simulate_stages(result.made, costs_of(profile, result.stages, values, options));
  result.memory = predict_memory(profile, result.stages, result.made, result.ran);
  result.links = links_of(result, values);
  return result;
}

std::uint64_t memory_excess(const job_prediction& job, const prediction_options& options,
                            std::size_t device) {
  auto limit = options.devices[device].memory_bytes;
  auto peak = job.memory[device].peak;
  return limit == 0 || peak <= limit ? 0 : peak - limit;
}

balance_options balance_for(const prediction_options& options) {
  if (usual_chunks(options.schedule) != 1)
    throw bad_input("the automatic placement gives each device one stage, but " +
                    std::string(to_string(options.schedule)) +
                    " has more. Choose gpipe, 1f1b, zb_h1 or zb_h2, or name a device map");
  if (options.devices.empty()) throw bad_input("automatic placement: no devices. Give at least one");
  return {.devices = options.devices,
          .num_microbatches = options.num_microbatches,
          .kept_microbatches = kept_microbatches(options, static_cast<int>(options.devices.size())),
          .bytes_per_s = options.bytes_per_s,
          .latency_s = options.latency_s};
}

}  // namespace troupe
