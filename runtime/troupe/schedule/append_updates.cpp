#include "troupe/schedule/append_updates.hpp"

#include <algorithm>

namespace troupe {
namespace {

std::vector<action>& device_with(int stage, plan& made) {
  auto device = made.device_of_stage[static_cast<std::size_t>(stage)];
  return made.devices[static_cast<std::size_t>(device)];
}

}  // namespace

std::vector<action> with_reductions(const std::vector<action>& actions, const plan& of) {
  std::vector<action> result;
  for (const auto& op : actions) {
    for (int index = 0; op.kind == action_kind::apply && index < of.reductions_per_step(); ++index) {
      int number = op.microbatch * of.reductions_per_step() + index;
      const auto& stages = of.reductions[static_cast<std::size_t>(number)];
      if (std::ranges::count(stages, op.stage) > 0)
        result.push_back({op.stage, action_kind::reduce_gradient, number});
    }
    result.push_back(op);
  }
  return result;
}

void append_updates(plan& made) {
  if (made.kind == schedule_kind::forward_only) return;
  int last = made.flush_every - 1;
  for (int number = last * made.reductions_per_step(); number < static_cast<int>(made.reductions.size());
       ++number)
    for (int stage : made.reductions[static_cast<std::size_t>(number)])
      device_with(stage, made).push_back({stage, action_kind::reduce_gradient, number});
  for (int stage = 0; stage < made.num_stages; ++stage)
    device_with(stage, made).push_back({stage, action_kind::apply, last});
}

}  // namespace troupe
