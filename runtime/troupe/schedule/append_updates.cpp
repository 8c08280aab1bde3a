#include "troupe/schedule/append_updates.hpp"

#include <algorithm>

namespace troupe::schedule {
namespace {

using layout::mesh_axis;

std::vector<action>& device_with(int stage, plan& made) {
  auto device = made.device_of_stage[static_cast<std::size_t>(stage)];
  return made.devices[static_cast<std::size_t>(device)];
}

/// What happens between the last weight gradient of a step and its end, for all stages: groups of actions of
/// the same kind, in order, each from the stage that does it first.
std::vector<std::vector<action>> updates_of(int step, const plan& made, const update_options& options) {
  using enum action_kind;
  std::vector<std::vector<action>> groups;
  bool has_replicas = made.mesh.num_replicas > 1;
  auto add_sums_over_replicas = [&] {
    auto& sums = groups.emplace_back();
    for (int stage = made.num_stages; stage-- > 0;)  // as their gradients are complete
      sums.push_back({stage, all_reduce, step});
  };
  auto add_reductions = [&](bool before_sums) {
    for (int index = 0; index < made.reductions_per_step(); ++index) {
      int number = step * made.reductions_per_step() + index;
      const auto& each = made.reductions[static_cast<std::size_t>(number)];
      if (each.before_sums != before_sums) continue;
      auto& partials = groups.emplace_back();
      for (int stage : each.stages) partials.push_back({stage, reduce_gradient, number});
    }
  };
  if (made.mesh.num_slices > 1) {
    auto& sums = groups.emplace_back();
    const auto& stages = options.stages_with_common_parameters;
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
      sums.push_back({*stage, all_reduce, step, mesh_axis::tp});
  }
  add_reductions(true);
  if (has_replicas && !options.averages_weights) add_sums_over_replicas();
  add_reductions(false);
  auto& steps = groups.emplace_back();
  for (int stage = 0; stage < made.num_stages; ++stage) steps.push_back({stage, apply, step});
  if (has_replicas && options.averages_weights) {
    auto& averages = groups.emplace_back();
    for (int stage = 0; stage < made.num_stages; ++stage) averages.push_back({stage, all_reduce, step});
  }
  return groups;
}

}  // namespace

std::vector<action> with_reductions(const std::vector<action>& actions, const plan& training,
                                    const update_options& options) {
  std::vector<action> result;
  for (const auto& op : actions) {
    if (op.kind != action_kind::apply) {
      result.push_back(op);
      continue;
    }
    for (const auto& group : updates_of(op.microbatch, training, options))
      std::ranges::copy_if(group, std::back_inserter(result),
                           [&op](const action& each) { return each.stage == op.stage; });
  }
  return result;
}

void append_updates(plan& made, const update_options& options) {
  if (made.kind == schedule_kind::forward_only) return;
  for (const auto& group : updates_of(made.flush_every - 1, made, options))
    for (const auto& op : group) device_with(op.stage, made).push_back(op);
}

}  // namespace troupe::schedule
