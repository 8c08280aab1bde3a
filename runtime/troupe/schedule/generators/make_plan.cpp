#include <algorithm>
#include <cstdint>
#include <functional>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/append_updates.hpp"
#include "troupe/schedule/insert_gathers.hpp"
#include "troupe/schedule/merge_stages.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/schedule/schedule_table.hpp"

namespace troupe {
namespace {

/// Larger plans are typing errors; they would only fill the memory.
constexpr std::int64_t most_cells = 1 << 20;

void refuse(const std::string& problem) { throw bad_input("no plan can be made: " + problem); }

schedule::chunk_shape shape_of(const plan_options& options) {
  return {options.num_devices, options.num_stages / options.num_devices, options.num_microbatches};
}

void check_options(const plan_options& options) {
  if (options.num_stages < 1) refuse(std::to_string(options.num_stages) + " stages. Give at least 1");
  if (options.num_microbatches < 1)
    refuse(std::to_string(options.num_microbatches) + " microbatches. Give at least 1");
  if (options.num_devices < 1) refuse(std::to_string(options.num_devices) + " devices. Give at least 1");
  if (options.num_replicas < 1) refuse(std::to_string(options.num_replicas) + " replicas. Give at least 1");
  if (options.num_slices < 1) refuse(std::to_string(options.num_slices) + " slices. Give at least 1");
  if (options.num_devices > options.num_stages)
    refuse(std::to_string(options.num_devices) + " devices for " + std::to_string(options.num_stages) +
           " stages leave devices without work. Use at most as many devices as stages");
  auto check_size = [&options](std::int64_t count, const std::string& what) {
    if (count > most_cells / options.num_microbatches)
      refuse(std::to_string(count) + " " + what + " times " + std::to_string(options.num_microbatches) +
             " microbatches is more than " + std::to_string(most_cells) + ". Use fewer microbatches");
  };
  auto steps = options.flush_every;
  if (steps < 1) refuse(std::to_string(steps) + " optimizer steps between two flushes. Give at least 1");
  if (steps > 1 && !schedule::schedule_of(options.kind).steps_order)
    refuse(std::string(to_string(options.kind)) + " flushes after every optimizer step, not after " +
           std::to_string(steps) + ". Leave --flush-every out, or use pipedream_2bw");
  check_size(std::int64_t{options.num_stages} * steps,
             steps == 1 ? "stages" : "stages times optimizer steps");
  check_size(static_cast<std::int64_t>(options.edges.size()), "edges");
  check_size(std::int64_t{options.num_replicas} * options.num_slices,
             options.num_slices == 1 ? "replicas" : "slices of all replicas");
  check_size(std::int64_t{options.num_stages} * steps * options.num_replicas * options.num_slices,
             options.num_slices == 1 ? "stages of all replicas and optimizer steps"
                                     : "stages of all replicas, slices and optimizer steps");
}

/// Of the caller's device_of_stage.
void check_placement(const plan_options& options) {
  const auto& placed = options.device_of_stage;
  if (placed.size() != static_cast<std::size_t>(options.num_stages))
    refuse("device_of_stage says for " + std::to_string(placed.size()) +
           " stages on which device they are. " + "Say it for all " + std::to_string(options.num_stages) +
           ", or for none");
  std::vector<bool> has_stage(static_cast<std::size_t>(options.num_devices), false);
  for (std::size_t stage = 0; stage < placed.size(); ++stage) {
    if (placed[stage] < 0 || placed[stage] >= options.num_devices)
      refuse("stage " + std::to_string(stage) + " is on device " + std::to_string(placed[stage]) +
             ". Choose one from 0 to " + std::to_string(options.num_devices - 1));
    has_stage[static_cast<std::size_t>(placed[stage])] = true;
  }
  auto idle = std::ranges::find(has_stage, false);
  if (idle != has_stage.end())
    refuse("device " + std::to_string(idle - has_stage.begin()) +
           " has no stage. Place one there, or use fewer devices");
}

/// The first `num_stages % num_devices` devices hold one stage more than the others.
std::vector<int> place_stages(int num_stages, int num_devices) {
  std::vector<int> device_of_stage;
  for (int device = 0; device < num_devices; ++device) {
    int count = num_stages / num_devices + (device < num_stages % num_devices ? 1 : 0);
    device_of_stage.insert(device_of_stage.end(), static_cast<std::size_t>(count), device);
  }
  return device_of_stage;
}

bool are_ascending(const std::vector<int>& stages, int num_stages) {
  bool is_ascending = std::ranges::adjacent_find(stages, std::greater_equal()) == stages.end();
  return is_ascending && (stages.empty() || (stages.front() >= 0 && stages.back() < num_stages));
}

void check_lanes(const plan_options& options) {
  if (auto ahead = options.gathers.ahead; ahead < 0 || ahead > schedule::most_gather_ahead)
    refuse("stages gather weights from 0 to " + std::to_string(schedule::most_gather_ahead) +
           " passes ahead, not " + std::to_string(ahead));
  auto stages = "some of 0 to " + std::to_string(options.num_stages - 1) + ", in ascending order";
  for (const auto& each : options.joint)
    if (each.stage < 0 || each.stage >= options.num_stages || !is_of_microbatch(each.kind))
      refuse("the actions that lanes run together are F, B, I and W of stages 0 to " +
             std::to_string(options.num_stages - 1));
  if (std::ranges::adjacent_find(options.joint, std::greater_equal()) != options.joint.end())
    refuse("the actions that lanes run together are in ascending order of stage, kind and axis");
  if (!are_ascending(options.stages_with_common_parameters, options.num_stages))
    refuse("the stages whose slices have common parameters are " + stages);
}

void check_reductions(const plan_options& options) {
  if (!options.reductions.empty() && options.kind == schedule_kind::forward_only)
    refuse("gradients are combined, but there are forwards only");
  if (!std::ranges::is_sorted(options.reductions, std::greater(), &schedule::reduction::before_sums))
    refuse("reductions that come before the sums over replicas are the first ones");
  for (const auto& each : options.reductions) {
    if (std::ranges::adjacent_find(each.axes, std::greater_equal()) != each.axes.end())
      refuse("the axes of a reduction are in ascending order, each once");
    if (each.stages.empty() || !are_ascending(each.stages, options.num_stages))
      refuse("a reduction is among stages from 0 to " + std::to_string(options.num_stages - 1) +
             ", in ascending order");
  }
}

/// Of a kind that places the stages itself.
void check_chunks(const schedule::schedule_row& row, const plan_options& options) {
  auto [stages, devices] = std::pair(options.num_stages, options.num_devices);
  auto name = std::string(row.name);
  const auto& rules = *row.chunked;
  if (rules.num_chunks != 0 && stages != rules.num_chunks * devices)
    refuse(name + " gives each device " + std::to_string(rules.num_chunks) + " stages, but there are " +
           std::to_string(stages) + " for " + std::to_string(devices) + " devices. Use " +
           std::to_string(rules.num_chunks * devices) + " stages, or half as many devices as stages");
  if (stages % devices != 0)
    refuse(name + " gives each device equally many stages, but " + std::to_string(devices) +
           " devices share " + std::to_string(stages) + ". Use " +
           std::to_string(stages / devices * devices) + " or " +
           std::to_string((stages / devices + 1) * devices) + " stages");
  for (std::size_t stage = 0; stage < options.device_of_stage.size(); ++stage) {
    int device = rules.device_of(static_cast<int>(stage), devices);
    if (options.device_of_stage[stage] != device)
      refuse(name + " runs stage " + std::to_string(stage) + " on device " + std::to_string(device) +
             ", but device_of_stage says " + std::to_string(options.device_of_stage[stage]) +
             ". Leave device_of_stage empty (the device map out), or choose another schedule");
  }
  if (auto why = rules.objection ? rules.objection(shape_of(options)) : ""; !why.empty())
    refuse(name + " needs " + why + ", not " + std::to_string(options.num_microbatches));
}

std::vector<int> placement_of(const schedule::schedule_row& row, const plan_options& options) {
  if (!options.device_of_stage.empty()) return options.device_of_stage;
  if (!row.chunked) return place_stages(options.num_stages, options.num_devices);
  std::vector<int> device_of_stage;
  for (int stage = 0; stage < options.num_stages; ++stage)
    device_of_stage.push_back(row.chunked->device_of(stage, options.num_devices));
  return device_of_stage;
}

/// Of `made` the edges, reductions and devices of the stages are known. `graph` is that of its edges.
std::vector<std::vector<action>> orders_of(const schedule::schedule_row& row, const plan_options& options,
                                           const schedule::stage_graph& graph, const plan& made,
                                           const schedule::update_options& updates) {
  std::vector<std::vector<action>> orders;
  if (row.chunked) {
    for (int device = 0; device < options.num_devices; ++device)
      orders.push_back(row.chunked->order(device, shape_of(options)));
    return orders;
  }
  for (int stage = 0; stage < options.num_stages; ++stage)
    orders.push_back(row.steps_order
                         ? schedule::with_reductions(
                               row.steps_order(stage, graph, {options.num_microbatches, options.flush_every}),
                               made, updates)
                         : row.stage_order(stage, graph, options.num_microbatches));
  if (options.num_devices < options.num_stages) return merge_stages(orders, graph, made);
  std::vector<std::vector<action>> devices(orders.size());
  for (std::size_t stage = 0; stage < orders.size(); ++stage)
    devices[static_cast<std::size_t>(made.device_of_stage[stage])] = std::move(orders[stage]);
  return devices;
}

}  // namespace

plan make_plan(const plan_options& options) {
  if (options.kind == schedule_kind::custom)
    refuse("the schedule 'custom' is that of a plan file, which read_plan_csv reads");
  const auto& row = schedule::schedule_of(options.kind);
  check_options(options);
  if (!options.device_of_stage.empty()) check_placement(options);
  check_reductions(options);
  check_lanes(options);
  if (row.chunked) check_chunks(row, options);
  plan made{.kind = options.kind,
            .num_stages = options.num_stages,
            .num_microbatches = options.num_microbatches * options.flush_every,
            .device_of_stage = placement_of(row, options),
            .edges = options.edges,
            .devices = std::vector<std::vector<action>>(static_cast<std::size_t>(options.num_devices)),
            .reductions = {},
            .flush_every = options.flush_every,
            .mesh = {options.num_replicas, options.num_slices},
            .has_equal_replicas = options.has_equal_replicas,
            .joint = joint_in(options.kind, {options.num_replicas, options.num_slices}, options.joint)};
  for (int step = 0; step < options.flush_every; ++step)
    made.reductions.insert(made.reductions.end(), options.reductions.begin(), options.reductions.end());
  if (made.edges.empty()) made.edges = schedule::chain_edges(options.num_stages);
  std::ranges::sort(made.edges);
  schedule::stage_graph graph(made.num_stages, made.edges);
  schedule::update_options updates{options.averages_weights, options.stages_with_common_parameters};
  made.devices = orders_of(row, options, graph, made, updates);
  schedule::append_updates(made, updates);
  schedule::insert_gathers(made, options.gathers);
  return made;
}

namespace {

/// Whether each device runs all forwards of a stage one after the other.
bool is_breadth_first(const plan& training) {
  for (const auto& device : training.devices) {
    std::vector<int> stages;
    for (const auto& op : device)
      if (op.kind == action_kind::forward && (stages.empty() || stages.back() != op.stage))
        stages.push_back(op.stage);
    std::ranges::sort(stages);
    if (std::ranges::adjacent_find(stages) != stages.end()) return false;
  }
  return true;
}

}  // namespace

plan forward_projection(const plan& training, int num_microbatches) {
  // A plan that lacks its edges must not become a chain.
  [[maybe_unused]] schedule::stage_graph refuses_missing_edges(training.num_stages, training.edges);
  auto made = make_plan({.kind = schedule_kind::forward_only,
                         .num_stages = training.num_stages,
                         .num_microbatches = num_microbatches,
                         .num_devices = training.num_devices(),
                         .edges = training.edges,
                         .device_of_stage = training.device_of_stage,
                         .num_replicas = training.mesh.num_replicas,
                         .num_slices = training.mesh.num_slices,
                         .has_equal_replicas = training.has_equal_replicas,
                         .joint = training.joint});
  // An edge leads to a higher stage: what an action waits for comes before.
  if (is_breadth_first(training))
    for (auto& device : made.devices) std::ranges::stable_sort(device, {}, &action::stage);
  auto gathers = training.gathers;
  gathers.gathers = schedule::shards_parameters(training);
  gathers.frees = schedule::frees_parameters(training);
  schedule::insert_gathers(made, gathers);
  return made;
}

}  // namespace troupe
