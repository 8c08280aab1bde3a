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
  if (std::int64_t{options.num_stages} * options.num_microbatches > most_cells)
    refuse(std::to_string(options.num_stages) + " stages times " + std::to_string(options.num_microbatches) +
           " microbatches is more than " + std::to_string(most_cells) + ". Use fewer microbatches");
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

/// A stage runs `ahead` forwards first, then alternates forward and backward while there are forwards, then
/// drains. GPipe is the case where it runs all forwards ahead; 1F1B runs as many ahead as the first
/// microbatch takes hops to the last stage and back here.
std::vector<action> stage_order(int stage, const plan_options& options) {
  bool all_ahead = options.kind != schedule_kind::one_f_one_b;
  int count = options.num_microbatches;
  int ahead = all_ahead ? count : std::min(count, options.num_stages - stage - 1);
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

/// Reduction after reduction, so that none waits for one that comes later on some device.
void append_reductions(plan& made) {
  for (std::size_t index = 0; index < made.reductions.size(); ++index)
    for (int stage : made.reductions[index]) {
      auto device = static_cast<std::size_t>(made.device_of_stage[static_cast<std::size_t>(stage)]);
      made.devices[device].push_back({stage, action_kind::reduce_gradient, static_cast<int>(index)});
    }
}

}  // namespace

plan make_plan(const plan_options& options) {
  check_options(options);
  check_reductions(options);
  std::vector<std::vector<action>> orders;
  for (int stage = 0; stage < options.num_stages; ++stage) orders.push_back(stage_order(stage, options));
  plan made{.kind = options.kind,
            .num_stages = options.num_stages,
            .num_microbatches = options.num_microbatches,
            .device_of_stage = place_stages(options.num_stages, options.num_devices),
            .devices = {},
            .reductions = options.reductions};
  made.devices = options.num_devices == options.num_stages
                     ? std::move(orders)
                     : merge_stages(orders, made.device_of_stage, options.num_devices);
  append_reductions(made);
  return made;
}

}  // namespace troupe
