#include "troupe/schedule/append_updates.hpp"

namespace troupe {
namespace {

std::vector<action>& device_with(int stage, plan& made) {
  auto device = made.device_of_stage[static_cast<std::size_t>(stage)];
  return made.devices[static_cast<std::size_t>(device)];
}

}  // namespace

void append_updates(plan& made) {
  if (made.kind == schedule_kind::forward_only) return;
  for (std::size_t index = 0; index < made.reductions.size(); ++index)
    for (int stage : made.reductions[index])
      device_with(stage, made).push_back({stage, action_kind::reduce_gradient, static_cast<int>(index)});
  for (int stage = 0; stage < made.num_stages; ++stage)
    device_with(stage, made).push_back({stage, action_kind::apply, 0});
}

}  // namespace troupe
