#include <algorithm>
#include <cstdint>
#include <functional>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/merge_stages.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe {
namespace {

/// Larger plans are typing errors; they would only fill the memory.
constexpr std::int64_t most_cells = 1 << 20;

void refuse(const std::string& problem) { throw bad_input("no plan can be made: " + problem); }

void check_options(const plan_options& options) {
  if (options.num_stages < 1) refuse(std::to_string(options.num_stages) + " stages. Give at least 1");
  if (options.num_microbatches < 1)
    refuse(std::to_string(options.num_microbatches) + " microbatches. Give at least 1");
  if (options.num_devices < 1) refuse(std::to_string(options.num_devices) + " devices. Give at least 1");
  if (options.num_devices > options.num_stages)
    refuse(std::to_string(options.num_devices) + " devices for " + std::to_string(options.num_stages) +
           " stages leave devices without work. Use at most as many devices as stages");
  auto check_size = [&options](std::int64_t count, const std::string& what) {
    if (count > most_cells / options.num_microbatches)
      refuse(std::to_string(count) + " " + what + " times " + std::to_string(options.num_microbatches) +
             " microbatches is more than " + std::to_string(most_cells) + ". Use fewer microbatches");
  };
  check_size(options.num_stages, "stages");
  check_size(static_cast<std::int64_t>(options.edges.size()), "edges");
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

/// How many forwards a stage runs before it begins to alternate. 1F1B: as many as a microbatch takes hops to
/// the loss on the longest way, which is about when its gradient comes back.
///
/// That keeps 1F1B free of deadlock in every graph: in the order of 2k - d for forward k and 2k + d + 1 for
/// backward k of a stage whose distance to the loss is d, all that a stage does ascends, and all that it
/// waits for comes before.
int forwards_ahead(int stage, const stage_graph& graph, const plan_options& options) {
  if (options.kind != schedule_kind::one_f_one_b) return options.num_microbatches;
  return std::min(options.num_microbatches, graph.distance_to_loss(stage));
}

/// A stage runs some forwards ahead, then alternates forward and backward while there are forwards, then
/// drains. GPipe is the case where it runs all forwards ahead.
std::vector<action> stage_order(int stage, const stage_graph& graph, const plan_options& options) {
  int count = options.num_microbatches;
  int ahead = forwards_ahead(stage, graph, options);
  std::vector<action> order;
  int forwards = 0;
  while (forwards < ahead) order.push_back({stage, action_kind::forward, forwards++});
  if (options.kind == schedule_kind::forward_only) return order;
  for (int backwards = 0; backwards < count; ++backwards) {
    if (forwards < count) order.push_back({stage, action_kind::forward, forwards++});
    order.push_back({stage, action_kind::backward, backwards});
  }
  return order;
}

void check_reductions(const plan_options& options) {
  if (!options.reductions.empty() && options.kind == schedule_kind::forward_only)
    refuse("gradients are combined, but there are forwards only");
  for (const auto& stages : options.reductions) {
    bool is_ascending = std::ranges::adjacent_find(stages, std::greater_equal()) == stages.end();
    if (stages.empty() || !is_ascending || stages.front() < 0 || stages.back() >= options.num_stages)
      refuse("a reduction is among stages from 0 to " + std::to_string(options.num_stages - 1) +
             ", in ascending order");
  }
}

std::vector<action>& actions_of(int stage, plan& made) {
  auto device = made.device_of_stage[static_cast<std::size_t>(stage)];
  return made.devices[static_cast<std::size_t>(device)];
}

/// Reduction after reduction, so that none waits for one that comes later on some device.
void append_reductions(plan& made) {
  for (std::size_t index = 0; index < made.reductions.size(); ++index)
    for (int stage : made.reductions[index])
      actions_of(stage, made).push_back({stage, action_kind::reduce_gradient, static_cast<int>(index)});
}

void append_applies(plan& made) {
  if (made.kind == schedule_kind::forward_only) return;
  for (int stage = 0; stage < made.num_stages; ++stage)
    actions_of(stage, made).push_back({stage, action_kind::apply, 0});
}

}  // namespace

plan make_plan(const plan_options& options) {
  check_options(options);
  if (!options.device_of_stage.empty()) check_placement(options);
  check_reductions(options);
  plan made{.kind = options.kind,
            .num_stages = options.num_stages,
            .num_microbatches = options.num_microbatches,
            .device_of_stage = options.device_of_stage,
            .edges = options.edges,
            .devices = {},
            .reductions = options.reductions};
  if (made.device_of_stage.empty())
    made.device_of_stage = place_stages(options.num_stages, options.num_devices);
  if (made.edges.empty()) made.edges = chain_edges(options.num_stages);
  std::ranges::sort(made.edges);
  stage_graph graph(made.num_stages, made.edges);
  std::vector<std::vector<action>> orders;
  for (int stage = 0; stage < options.num_stages; ++stage)
    orders.push_back(stage_order(stage, graph, options));
  if (options.num_devices == options.num_stages) {
    made.devices.resize(orders.size());
    for (int stage = 0; stage < options.num_stages; ++stage)
      actions_of(stage, made) = std::move(orders[static_cast<std::size_t>(stage)]);
  } else {
    made.devices = merge_stages(orders, graph, made.device_of_stage, options.num_devices);
  }
  append_reductions(made);
  append_applies(made);
  return made;
}

plan forward_projection(const plan& training, int num_microbatches) {
  // A plan that lacks its edges must not become a chain.
  [[maybe_unused]] stage_graph refuses_missing_edges(training.num_stages, training.edges);
  return make_plan({.kind = schedule_kind::forward_only,
                    .num_stages = training.num_stages,
                    .num_microbatches = num_microbatches,
                    .num_devices = training.num_devices(),
                    .edges = training.edges,
                    .device_of_stage = training.device_of_stage});
}

}  // namespace troupe
